import { monitorEventLoopDelay } from 'node:perf_hooks'
import { AquilaError, Csr, type Progress, readXmc, XLinear } from 'aquila-xmc'
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

/** The longest time the event loop stood still for the work, the call itself included, in ms: the best of a few
 * tries, for other processes on the machine can only add to it. */
async function longestDelay(work: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 15 && best >= 20; i++) {
    const delay = monitorEventLoopDelay({ resolution: 1 })
    await sleep(5)
    delay.enable()
    // The monitor does not see what is done before the loop turns for the first time.
    const start = performance.now()
    const done = work()
    const called = performance.now() - start
    await done
    await sleep(5)
    delay.disable()
    best = Math.min(best, Math.max(called, delay.max / 1e6))
  }
  return best
}

describe('the event loop', () => {
  it('goes on during training', async () => {
    expect(await longestDelay(() => XLinear.train(big.x, big.y, {}, { threads: 1 }))).toBeLessThan(20)
  })

  it('goes on during prediction', async () => {
    expect(await longestDelay(() => model.predict(big.x, {}, { threads: 1 }))).toBeLessThan(20)
  })

  it('goes on while a large model is copied', async () => {
    const bytes = new Uint8Array(200_000_000).fill(1)
    const opened = () => expectError(() => XLinear.fromBytes(bytes), 'BAD_MODEL')
    expect(await longestDelay(opened)).toBeLessThan(20)
  })

  it('goes on while very many names are taken', async () => {
    const { x, y, labelNames } = manyLabels()
    const trained = () => XLinear.train(x, y, { labelNames, solver: { maxPasses: 1 } })
    expect(await longestDelay(trained)).toBeLessThan(20)
  })

  it('goes on while very many meanings are told', async () => {
    const { x, y } = problem({ rows: 30_000, labels: 10_000, noise: 2_000, seed: 3 })
    const overlap = { copies: 2, leafCap: 4, minScore: 0 }
    const told = await XLinear.train(x, y, { overlap, solver: { maxPasses: 1 } })
    expect((await told.meanings({ features: 0 })).length).toBeGreaterThan(5_000)
    expect(await longestDelay(() => told.meanings())).toBeLessThan(20)
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
  async function cancelled(work: (signal: AbortSignal) => Promise<unknown>, after: number): Promise<number> {
    const controller = new AbortController()
    const reason = new Error('enough')
    const promise = work(controller.signal)
    const failed = promise.then(
      () => 'ended before it was cancelled',
      (error: unknown) => error,
    )
    await sleep(after)
    const start = performance.now()
    controller.abort(reason)
    expect(await failed).toBe(reason)
    return performance.now() - start
  }

  it('ends a training within 200 ms, whatever it is doing', async () => {
    const { x, y } = hardProblem()
    for (const after of [0, 20, 100, 300, 1000]) {
      let best = Number.POSITIVE_INFINITY
      for (let i = 0; i < 3 && best >= 200; i++) {
        const work = (signal: AbortSignal) => XLinear.train(x, y, { solver: ENDLESS }, { signal, threads: 1 })
        best = Math.min(best, await cancelled(work, after))
      }
      expect(best).toBeLessThan(200)
    }
  })

  it('ends a prediction within 200 ms', async () => {
    const wide = { beam: 1000, k: 1000 }
    expect(await cancelled((signal) => model.predict(big.x, wide, { signal, threads: 1 }), 10)).toBeLessThan(
      200,
    )
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
    const start = performance.now()
    const { code } = await script(`${prepare}
      aquila.XLinear.train(x, y, { solver: { eps: 1e-6, maxPasses: 10000 } }, { onProgress() {} })
      setTimeout(() => process.exit(7), 100)`)
    expect(code).toBe(7)
    expect(performance.now() - start).toBeLessThan(20_000)
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
