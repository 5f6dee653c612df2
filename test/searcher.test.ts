import { join } from 'node:path'
import { XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, folder, learned } from './helpers.js'

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
