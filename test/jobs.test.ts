import { monitorEventLoopDelay } from 'node:perf_hooks'
import { AquilaError, type Progress, readXmc, XLinear } from 'aquila-xmc'
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

/** The longest time the event loop stood still during the work, in ms: the best of a few tries, for other
 * processes on the machine can only add to it. */
async function longestDelay(work: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 5 && best >= 20; i++) {
    const delay = monitorEventLoopDelay({ resolution: 1 })
    await sleep(5)
    delay.enable()
    await work()
    delay.disable()
    best = Math.min(best, delay.max / 1e6)
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
