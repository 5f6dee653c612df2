import { join } from 'node:path'
import { type SearchOptions, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, folder, learned, problem, script } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)
const { data, model } = await learned()

describe('single queries', () => {
  it('answer as batches do', async () => {
    const top = await model.predict(data.x, { k: 4, beam: 3 })
    const searcher = model.searcher({ k: 4, beam: 3 })
    expect([searcher.labels.length, searcher.scores.length]).toEqual([4, 4])
    for (let i = 0; i < 100; i++) {
      const row = data.x.row(i)
      const expected = top.row(i)
      expect(model.predictOne(row, { k: 4, beam: 3 })).toEqual(expected)
      const count = searcher.search(row.indices, row.values)
      expect(searcher.labels.subarray(0, count)).toEqual(expected.labels)
      expect(searcher.scores.subarray(0, count)).toEqual(expected.scores)
    }
  })

  it('are refused for the same options whether a searcher is warm or not', async () => {
    const row = data.x.row(0)
    const ask = (options?: unknown) => model.predictOne(row, options as never)
    const wrong: [unknown, Parameters<typeof expectError>[1]][] = [
      [{ beem() {} }, 'UNKNOWN_OPTION'],
      [{ beem: Symbol('b') }, 'UNKNOWN_OPTION'],
      [{ k: Symbol('k') }, 'INVALID_ARGUMENT'],
      [{ k: '3' }, 'INVALID_ARGUMENT'],
      [{ k: { toJSON: () => 3 } }, 'UNKNOWN_OPTION'],
      [{ k: 3, beem() {} }, 'UNKNOWN_OPTION'],
      [{ k: null }, 'INVALID_ARGUMENT'],
      [{ k: Number.NaN }, 'INVALID_ARGUMENT'],
      [{ floor: Number.POSITIVE_INFINITY }, 'INVALID_ARGUMENT'],
      [{ hasOwnProperty: 3 }, 'UNKNOWN_OPTION'],
      [null, 'INVALID_ARGUMENT'],
    ]
    const warm = () => [undefined, {}, { k: 3 }, { floor: -1 }, { k: 3, beam: 10 }].forEach(ask)
    warm()
    for (const [options, code] of wrong) {
      await expectError(() => ask(options), code)
      await expectError(() => ask(options), code)
    }
    expect(ask({ k: 3 }).labels.length).toBe(3)
    // Options are read at each call, and those that are inherited never count.
    const options = { k: 3 }
    expect(ask(options).labels.length).toBe(3)
    options.k = 2
    expect(ask(options).labels.length).toBe(2)
    expect(ask({ k: 3, beam: undefined })).toEqual(ask({ k: 3 }))
    expect(ask(Object.create({ k: 1 }))).toEqual(ask())
    const allowed = new Uint32Array([0])
    expect(ask({ allowed }).labels).toEqual(allowed)
    allowed[0] = 1
    expect(ask({ allowed }).labels).toEqual(allowed)
    // More settings than are kept.
    for (let k = 1; k <= 20; k++) expect(ask({ k: (k % 10) + 1 }).labels.length).toBe((k % 10) + 1)
  })

  it('read views, empty rows and k above the number of labels', () => {
    const { indices, values } = data.x.row(5)
    const wide = new Uint32Array([99, ...indices, 99]).subarray(1, -1)
    expect(model.predictOne({ indices: wide, values })).toEqual(model.predictOne({ indices, values }))
    expect(
      model.predictOne({ indices: new Uint32Array(), values: new Float32Array() }).labels.length,
    ).toBeLessThanOrEqual(10)
    expect(model.searcher({ k: 1000, beam: 1000 }).search(indices, values)).toBe(40)
  })

  it('refuse bad rows and stay usable', async () => {
    const searcher = model.searcher()
    const { indices, values } = data.x.row(0)
    const bad: [unknown, unknown, Parameters<typeof expectError>[1], RegExp][] = [
      [[1], values, 'INVALID_ARGUMENT', /a Uint32Array for indices but received Array/],
      [indices, [1], 'INVALID_ARGUMENT', /a Float32Array for values but received Array/],
      [new Int32Array(indices), values, 'INVALID_ARGUMENT', /received Int32Array/],
      [indices, new Float64Array(values), 'INVALID_ARGUMENT', /received Float64Array/],
      [undefined, undefined, 'INVALID_ARGUMENT', /received undefined/],
      [indices, values.subarray(1), 'SHAPE_MISMATCH', /values/],
      [new Uint32Array([5, 2]), new Float32Array(2), 'UNSORTED_INDICES', /row/],
      [new Uint32Array([5, 5]), new Float32Array(2), 'DUPLICATE_INDEX', /row/],
      [new Uint32Array([140]), new Float32Array(1), 'INDEX_OUT_OF_RANGE', /140/],
      [new Uint32Array([1]), new Float32Array([Number.NaN]), 'NOT_FINITE', /NaN/],
    ]
    for (const [i, v, code, message] of bad) {
      await expectError(() => searcher.search(i as never, v as never), code, message)
      await expectError(() => model.predictOne({ indices: i as never, values: v as never }), code)
    }
    await expectError(() => model.predictOne(undefined as never), 'INVALID_ARGUMENT')
    expect(searcher.search(indices, values)).toBeGreaterThan(0)
  })

  it('survive detached and shared arrays', async () => {
    const { indices, values } = data.x.row(0)
    const searcher = model.searcher({ k: 2 })
    const gone = indices.slice()
    structuredClone(gone, { transfer: [gone.buffer] })
    await expectError(() => searcher.search(gone, values), 'SHAPE_MISMATCH', /0 indices/)
    const shared = new Uint32Array(new SharedArrayBuffer(indices.byteLength))
    shared.set(indices)
    expect(searcher.search(shared, values)).toBe(2)
    structuredClone(searcher.labels, { transfer: [searcher.labels.buffer as ArrayBuffer] })
    await expectError(() => searcher.search(indices, values), 'INVALID_ARGUMENT', /transferred/)
  })

  it('end with the model', async () => {
    await model.save(place('short.aquila'))
    const short = await XLinear.open(place('short.aquila'))
    const searcher = short.searcher()
    const { indices, values } = data.x.row(0)
    expect(searcher.search(indices, values)).toBeGreaterThan(0)
    short.close()
    await expectError(() => searcher.search(indices, values), 'CLOSED', /the model is closed/)
    await expectError(() => short.predictOne({ indices, values }), 'CLOSED')
  })
})

describe('settings of single queries', () => {
  it('take allowed labels, whatever was asked before', async () => {
    // More sets than are kept, each met again after the others.
    const sets = Array.from({ length: 9 }, (_, s) =>
      Uint32Array.from({ length: 40 }, (_, label) => label).filter((label) => label % (s + 2) === 0),
    )
    const narrowed = sets.map((allowed) => model.searcher({ k: 4, allowed }))
    for (const [s, allowed] of [...sets.entries(), ...sets.entries()]) {
      const options: SearchOptions = { k: 4, beam: 3, allowed }
      const top = await model.predict(data.x, options)
      const searcher = narrowed[s] as (typeof narrowed)[number]
      for (let i = 0; i < 10; i++) {
        const row = data.x.row(i)
        expect(model.predictOne(row, options)).toEqual(top.row(i))
        expect(model.predictOne(row, { k: 4, beam: 3 }).labels.length).toBe(4)
        const wide = model.predictOne(row, { k: 4, allowed })
        const count = searcher.search(row.indices, row.values)
        expect(searcher.labels.subarray(0, count)).toEqual(wide.labels)
        expect(searcher.scores.subarray(0, count)).toEqual(wide.scores)
      }
    }
    const row = data.x.row(0)
    expect(model.predictOne(row, { allowed: new Uint32Array() }).labels.length).toBe(0)
    for (const ask of [
      (allowed: unknown) => model.predictOne(row, { allowed: allowed as never }),
      (allowed: unknown) => model.searcher({ allowed: allowed as never }),
    ]) {
      await expectError(() => ask([1]), 'INVALID_ARGUMENT', /a Uint32Array for allowed/)
      await expectError(() => ask(Uint32Array.of(40)), 'INDEX_OUT_OF_RANGE', /label 40/)
      await expectError(() => ask(Uint32Array.of(3, 2)), 'UNSORTED_INDICES')
      await expectError(() => ask(Uint32Array.of(3, 3)), 'DUPLICATE_INDEX')
    }
    expect(model.predictOne(row, { k: 4 })).toEqual((await model.predict(data.x, { k: 4 })).row(0))
  })

  it('are those of each call, in whatever order they come', async () => {
    const row = data.x.row(7)
    const scores = ['l3-hinge', 'log-sigmoid', 'noop', 'l1-hinge'] as const
    const all = scores.flatMap((scores) =>
      [1, 4, 40].flatMap((k) => [1, 6].map((beam) => ({ k, beam, scores, floor: -0.5 }))),
    )
    const batch = await Promise.all(all.map((options) => model.predict(data.x, options)))
    for (const step of [1, 5, 7])
      for (let i = 0; i < all.length; i++) {
        const at = (i * step) % all.length
        expect(model.predictOne(row, all[at])).toEqual(batch[at]?.row(7))
      }
  })
})

describe('a closed searcher', () => {
  it('is refused, its model and other searchers are not', async () => {
    const { indices, values } = data.x.row(0)
    for (const options of [{ k: 2 }, { k: 2, allowed: Uint32Array.of(0, 5, 9) }]) {
      const [one, other] = [model.searcher(options), model.searcher(options)]
      expect(one.search(indices, values)).toBe(2)
      const best = one.labels[0]
      one.close()
      one.close()
      await expectError(() => one.search(indices, values), 'CLOSED', /the searcher is closed/)
      expect(one.labels[0]).toBe(best)
      expect(other.search(indices, values)).toBe(2)
      other[Symbol.dispose]()
      await expectError(() => other.search(indices, values), 'CLOSED', /the searcher is closed/)
    }
    expect(model.predictOne({ indices, values }).labels.length).toBeGreaterThan(2)
  })
})

describe('in a loop that never lets the event loop turn', () => {
  const path = place('loop.aquila')
  const prelude = `
    const model = await aquila.XLinear.open(${JSON.stringify(path)})
    const row = { indices: new Uint32Array([0, 1, 2, 60, 61]), values: new Float32Array([1, 1, 1, 0.5, 0.5]) }
    const megabytes = () => process.memoryUsage.rss() / 2 ** 20
    const grown = (count, ask) => {
      for (let i = 0; i < 2000; i++) ask(i)
      const before = megabytes()
      for (let i = 0; i < count; i++) ask(i)
      return Math.round(megabytes() - before)
    }
  `
  const numbers = async (code: string) => {
    await (await XLinear.train(problem().x, problem().y)).save(path)
    const { stdout, stderr } = await script(prelude + code)
    expect(stderr).toBe('')
    return JSON.parse(stdout) as number[]
  }

  it('memory stays flat, however many settings there are', async () => {
    // A scratch memory for each call would take more than 30 kB: half a gigabyte or more in each of these.
    const all = await numbers(`
      const set = (i) => new Uint32Array([i % 10, 10 + i % 7, 20 + i % 11])
      console.log(JSON.stringify([
        grown(20000, (i) => model.predictOne(row, { k: 5, beam: 1 + i % 50 })),
        grown(20000, (i) => model.predictOne(row, { floor: -i / 1000 })),
        grown(20000, (i) => model.predictOne(row, { allowed: set(i) })),
        grown(20000, (i) => model.searcher({ beam: 1 + i % 50 }).search(row.indices, row.values)),
        grown(20000, (i) => {
          const searcher = model.searcher({ allowed: set(i) })
          searcher.search(row.indices, row.values)
          searcher.close()
        }),
      ]))`)
    for (const megabytes of all) expect(megabytes).toBeLessThan(150)
  })

  it('fifty settings by turns take little longer than one', async () => {
    const [one, many] = await numbers(`
      const time = (ask) => {
        const start = performance.now()
        for (let i = 0; i < 2000; i++) ask(i)
        return performance.now() - start
      }
      const settings = Array.from({ length: 50 }, (_, i) => ({ k: 5, beam: 10 + i }))
      const same = settings.map(() => ({ k: 5, beam: 34 }))
      // The best of several, by turns: what else the machine does can only add to them.
      let [one, many] = [Infinity, Infinity]
      for (let round = 0; round < 15; round++) {
        one = Math.min(one, time((i) => model.predictOne(row, same[i % 50])))
        many = Math.min(many, time((i) => model.predictOne(row, settings[i % 50])))
      }
      console.log(JSON.stringify([one, many]))`)
    // About 1; with a searcher for each call it was 16.
    expect((many as number) / (one as number)).toBeLessThan(3)
  })
})
