import { AquilaError, type CallOptions, Csr, type Progress, readXmc, XLinear } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  bigProblem,
  ENDLESS,
  expectError,
  hardProblem,
  type Problem,
  problem,
  script,
  sleep,
} from './helpers.js'

let big: Problem
let model: XLinear

beforeAll(async () => {
  big = bigProblem()
  model = await XLinear.train(big.x, big.y, { solver: { maxPasses: 1 } })
})

/** How often the event loop turned from when the call returned until its promise settled: a count, as a time would tell of
 * whatever else the machine does. */
async function turns(work: () => Promise<unknown>): Promise<number> {
  const settled = work().then(
    () => true,
    () => true,
  )
  for (let turned = 0; ; turned++)
    if (await Promise.race([settled, new Promise<false>((turn) => setImmediate(turn, false))])) return turned
}

describe('the event loop', () => {
  // Work of half a second and more on other threads leaves it thousands of turns, however busy the machine is; work on
  // its own thread, two or three.
  it('goes on during training', async () => {
    expect(await turns(() => XLinear.train(big.x, big.y, {}, { threads: 1 }))).toBeGreaterThan(20)
  })

  it('goes on during prediction', async () => {
    expect(await turns(() => model.predict(big.x, {}, { threads: 1 }))).toBeGreaterThan(20)
  })

  // What is handed over on this thread comes in pieces of a known size, with a turn after each.
  it('goes on while a large model is copied', async () => {
    const bytes = new Uint8Array(200_000_000).fill(1)
    const opened = () => expectError(() => XLinear.fromBytes(bytes), 'BAD_MODEL')
    expect(await turns(opened)).toBeGreaterThanOrEqual(200_000_000 / (4 << 20) - 1)
  })

  it('goes on while very many names are taken', async () => {
    const { x, y, labelNames } = manyLabels()
    const trained = () => XLinear.train(x, y, { labelNames, solver: { maxPasses: 1 } })
    expect(await turns(trained)).toBeGreaterThanOrEqual(200_000 / 5_000 - 1)
  })

  it('goes on while very many meanings are told', async () => {
    const { x, y } = problem({ rows: 30_000, labels: 10_000, noise: 2_000, seed: 3 })
    const overlap = { copies: 2, leafCap: 4, minScore: 0 }
    const told = await XLinear.train(x, y, { overlap, solver: { maxPasses: 1 } })
    expect((await told.meanings({ features: 0 })).length).toBeGreaterThan(5_000)
    expect(await turns(() => told.meanings())).toBeGreaterThan(5_000 / 100)
  })
})

/** A few rows with 200,000 labels, each with a name. */
function manyLabels() {
  const [rows, labels] = [1_000, 200_000]
  const indptr = Uint32Array.from({ length: rows + 1 }, (_, i) => i)
  const values = new Float32Array(rows).fill(1)
  const one = (cols: number) =>
    Csr.from({ rows, cols, indptr, indices: Uint32Array.from(values, (_, i) => (i * 7) % cols), values })
  return { x: one(50), y: one(labels), labelNames: Array.from({ length: labels }, (_, i) => `label ${i}`) }
}

describe('what is taken over in pieces', () => {
  it('is what it was when the call was made', async () => {
    const { x, y, labelNames } = manyLabels()
    const featureNames = Array.from({ length: 50 }, (_, i) => `word ${i}`)
    const pending = XLinear.train(x, y, { labelNames, featureNames })
    labelNames.fill('altered')
    featureNames.length = 3
    x.close()
    y.close()
    const named = await pending
    expect([0, 4_999, 5_000, 199_999].map((label) => named.labelName(label))).toEqual([
      'label 0',
      'label 4999',
      'label 5000',
      'label 199999',
    ])
    expect(named.featureName(49)).toBe('word 49')
  })

  it('is refused where it is wrong, wherever that is', async () => {
    const { x, y, labelNames } = manyLabels()
    const wrong = (at: number, name: unknown) => () =>
      XLinear.train(x, y, { labelNames: labelNames.with(at, name as string) })
    for (const at of [0, 5_000, 199_999])
      await expectError(
        wrong(at, 7),
        'INVALID_ARGUMENT',
        new RegExp(`a string for labelNames\\[${at}\\] but received 7`),
      )
    const short = () => XLinear.train(x, y, { labelNames: labelNames.slice(1) })
    await expectError(short, 'SHAPE_MISMATCH', /199999/)
    await expectError(
      () => XLinear.train(x, y, { labelNames, solver: { none: 1 } as object }),
      'UNKNOWN_OPTION',
    )
  })

  it('is left when the call is aborted', async () => {
    const { x, y, labelNames } = manyLabels()
    const reason = new Error('enough')
    for (const work of [
      (signal: AbortSignal) => XLinear.train(x, y, { labelNames }, { signal }),
      (signal: AbortSignal) => XLinear.fromBytes(new Uint8Array(100_000_000), {}, { signal }),
    ]) {
      const controller = new AbortController()
      const pending = work(controller.signal)
      setImmediate(() => controller.abort(reason))
      await expect(pending).rejects.toBe(reason)
    }
  })

  it('must stay where it is', async () => {
    const bytes = new Uint8Array(50_000_000)
    const pending = XLinear.fromBytes(bytes)
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    await expectError(() => pending, 'INVALID_ARGUMENT', /transferred/)
  })
})

describe('cancellation', () => {
  /** Aborts a call when it reports what `when` waits for, and returns its last report. */
  async function abortedAt(
    work: (call: CallOptions) => Promise<unknown>,
    when: (progress: Progress) => boolean,
  ): Promise<Progress> {
    const [controller, reason] = [new AbortController(), new Error('enough')]
    let last: Progress | undefined
    const onProgress = (progress: Progress) => {
      last = progress
      if (when(progress)) controller.abort(reason)
    }
    await expect(work({ onProgress, signal: controller.signal, threads: 1 })).rejects.toBe(reason)
    return last ?? expect.fail('no progress')
  }

  // By itself this training takes minutes, which is longer than a test may: that it ends shows that it was ended.
  it.each(['forecast', 'labelVectors', 'tree', 'layers'])('ends a training at its %s', async (stage) => {
    const { x, y } = hardProblem()
    const train = (call: CallOptions) => XLinear.train(x, y, { solver: ENDLESS }, call)
    const last = await abortedAt(train, (progress) => progress.stage === stage)
    expect(last.stage === 'layers' && last.done === last.total).toBe(false)
  })

  it('ends a training at once', async () => {
    const { x, y } = hardProblem()
    const [controller, reason] = [new AbortController(), new Error('enough')]
    const running = XLinear.train(x, y, { solver: ENDLESS }, { signal: controller.signal })
    controller.abort(reason)
    await expect(running).rejects.toBe(reason)
  })

  it('ends a prediction in its midst', async () => {
    // Each row looks at every node: several times the work that is done before the first report arrives.
    const wide = { beam: 1000, k: 1000 }
    const last = await abortedAt(
      (call) => model.predict(big.x, wide, call),
      () => true,
    )
    expect(last.done).toBeLessThan(last.total)
  })

  it('is noticed before the call begins', async () => {
    const signal = AbortSignal.abort()
    await expect(XLinear.train(big.x, big.y, {}, { signal })).rejects.toBe(signal.reason)
    await expect(readXmc('never read', { signal })).rejects.toBe(signal.reason)
    await expect(model.predict(big.x, {}, { signal: AbortSignal.timeout(1) })).rejects.toThrow(/timeout/)
  })

  it('leaves the signal as it was and the library usable', async () => {
    const { x, y } = problem()
    const controller = new AbortController()
    let called = 0
    controller.signal.onabort = () => called++
    await XLinear.train(x, y, {}, { signal: controller.signal })
    controller.abort()
    expect(called).toBe(1)
    expect((await model.predict(big.x)).rows).toBe(big.x.rows)
  })
})

describe('onProgress', () => {
  it('is told of every stage and of the end, and never after the promise settled', async () => {
    const seen: Progress[] = []
    let settled = false
    await XLinear.train(
      big.x,
      big.y,
      {},
      {
        onProgress: (progress) => {
          expect(settled).toBe(false)
          seen.push({ ...progress })
        },
      },
    )
    settled = true
    await sleep(50)
    const stages = new Set(seen.map((p) => p.stage))
    for (const stage of ['labelVectors', 'tree', 'layers']) expect(stages).toContain(stage)
    const last = seen.at(-1) ?? expect.fail('no progress')
    expect(last.done).toBe(last.total)
    for (const p of seen) {
      expect(p.done).toBeLessThanOrEqual(p.total)
      expect([p.rows, p.labels]).toEqual([big.x.rows, big.y.cols])
    }
  })

  it('may throw: the call goes on and the process gets a warning', async () => {
    const { x, y } = problem()
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const trained = await XLinear.train(
      x,
      y,
      {},
      {
        onProgress: () => {
          throw new Error('from the listener')
        },
      },
    )
    expect(trained.info.labels).toBe(40)
    expect((await warned).message).toContain('from the listener')
  })
})

describe('the process', () => {
  const prepare = `
    const n = 20000, k = 2000
    const indptr = Uint32Array.from({ length: n + 1 }, (_, i) => i * 2)
    const make = (cols) => aquila.Csr.from({ rows: n, cols, indptr,
      indices: Uint32Array.from({ length: 2 * n }, (_, i) => ((i >> 1) * 7919 % (cols >> 1)) + (i & 1) * (cols >> 1)),
      values: new Float32Array(2 * n).fill(1) })
    const x = make(5000), y = make(k)
  `

  it('waits for a running call', async () => {
    const { code, stdout } = await script(`${prepare}
      aquila.XLinear.train(x, y, {}, { onProgress() {} }).then((m) => console.log(m.info.labels))`)
    expect([code, stdout.trim()]).toEqual([0, '2000'])
  })

  it('ends at once when told to, work or no work', async () => {
    // The work takes minutes, which is longer than a test may.
    const { code } = await script(`${prepare}
      aquila.XLinear.train(x, y, { solver: { eps: 1e-6, maxPasses: 10000 } }, { onProgress() {} })
      setTimeout(() => process.exit(7), 100)`)
    expect(code).toBe(7)
  })

  it('is not ended by a rejection that is handled', async () => {
    const { code, stdout } = await script(`
      await aquila.XLinear.open('/nowhere').catch((e) => console.log(e.code))`)
    expect([code, stdout.trim()]).toEqual([0, 'IO'])
  })
})

describe('many calls at once', () => {
  it('all end', async () => {
    const all = Array.from({ length: 20 }, (_, i) => model.predict(big.x, { k: 1 + i }, { threads: 1 }))
    const tops = await Promise.all(all)
    expect(tops.map((top) => top.row(0).labels.length)).toEqual(tops.map((_, i) => Math.min(1 + i, 20)))
  })

  it('reject one by one', async () => {
    const wide = problem({ noise: 100_000 }).x
    const all = Array.from({ length: 20 }, () => model.predict(wide).catch((e: unknown) => e))
    for (const error of await Promise.all(all)) expect(error).toBeInstanceOf(AquilaError)
    await expectError(() => model.predict(wide), 'SHAPE_MISMATCH')
  })
})
