import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  AquilaError,
  Dense,
  evaluate,
  Features,
  forecast,
  LabelTree,
  readNpz,
  runtime,
  trainParameters,
  writeNpz,
  XLinear,
} from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectError, folder, matrix, type Problem, problem } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)
let data: Problem
let model: XLinear

beforeAll(async () => {
  data = problem()
  model = await XLinear.train(
    data.x,
    data.y,
    {
      tree: { maxLeaf: 8, arity: 4 },
      labelNames: Array.from({ length: 40 }, (_, i) => `label ${i}`),
      metadata: { source: 'test', at: [1, 2] },
    },
    { threads: 2, seed: 3 },
  )
})

describe('training and prediction', () => {
  it('finds the labels', async () => {
    const top = await model.predict(data.x, { k: 5 }, { threads: 2 })
    expect(top.rows).toBe(data.x.rows)
    const { precision } = await evaluate(top, data.y, { k: [1] })
    expect(precision[1]).toBeGreaterThan(0.95)
  })

  it('does not depend on the number of threads', async () => {
    const one = await XLinear.train(
      data.x,
      data.y,
      { tree: { maxLeaf: 8, arity: 4 } },
      { threads: 1, seed: 3 },
    )
    const [a, b] = [
      await one.predict(data.x, {}, { threads: 1 }),
      await model.predict(data.x, {}, { threads: 3 }),
    ]
    expect(a).toEqual(b)
  })

  it('ranks best first, ties by label', async () => {
    const top = await model.predict(data.x, { k: 40, beam: 40 })
    for (let i = 0; i < top.rows; i++) {
      const { labels, scores } = top.row(i)
      for (let j = 1; j < labels.length; j++) {
        const [before, now] = [scores[j - 1] as number, scores[j] as number]
        expect(before > now || (before === now && (labels[j - 1] as number) < (labels[j] as number))).toBe(
          true,
        )
      }
    }
  })

  it('obeys floor, allowed and chosen', async () => {
    const { scores } = await model.predict(data.x, { k: 40, beam: 40, floor: 0.3 })
    expect(Math.min(...scores)).toBeGreaterThanOrEqual(0.3)
    const allowed = new Uint32Array([3, 7, 21])
    const within = await model.predict(data.x, { k: 40, beam: 40, allowed })
    expect([...new Set(within.labels)].sort((a, b) => a - b)).toEqual([3, 7, 21])
    const chosen = matrix(
      data.truth.map((_, i): [number, number][] => [
        [i % 40, 1],
        ...(i % 40 < 39 ? ([[39, 1]] as [number, number][]) : []),
      ]),
      40,
    )
    const asked = await model.predict(data.x, { k: 40, beam: 1, chosen })
    for (let i = 0; i < 100; i++)
      expect([...asked.row(i).labels].sort((a, b) => a - b)).toEqual([...chosen.row(i).indices])
    await expectError(() => model.predict(data.x, { allowed, chosen }), 'INVALID_ARGUMENT', /both/)
    await expectError(() => model.predict(data.x, { allowed: new Uint32Array([40]) }), 'INDEX_OUT_OF_RANGE')
    await expectError(
      () => model.predict(data.x, { allowed: [1] as never }),
      'INVALID_ARGUMENT',
      /a Uint32Array for allowed/,
    )
  })

  it('reports what training took and what the model is', () => {
    const { seconds, forecastBytes } = model.report ?? expect.fail('no report')
    expect(seconds.total).toBeGreaterThan(0)
    expect(forecastBytes).toBeGreaterThan(1000)
    const { info } = model
    expect(info).toMatchObject({
      features: 140,
      labels: 40,
      slots: 40,
      seed: 3,
      metadata: { source: 'test', at: [1, 2] },
    })
    expect(info.layers.at(-1)).toBe(40)
    expect(info.params['tree.maxLeaf']).toBe(8)
    expect(info.params['solver.cp']).toBe(1)
    expect(model.labelNames[7]).toBe('label 7')
    expect(model.labelNames.length).toBe(40)
    expect([model.labelName(39), model.labelName(40)]).toEqual(['label 39', undefined])
  })

  it('takes features with a dense block', async () => {
    const { x, y } = problem({ rows: 200, labels: 10 })
    const values = Float32Array.from({ length: 200 * 4 }, (_, i) => Math.sin(i))
    const both = Features.from(x, Dense.from({ rows: 200, cols: 4, values }))
    const mixed = await XLinear.train(both, y)
    expect(mixed.info.features).toBe(x.cols + 4)
    expect(mixed.info.denseFeatures).toBe(4)
    const top = await mixed.predict(both, { k: 3 })
    expect(top.rows).toBe(200)
    await expectError(() => mixed.predict(problem({ labels: 20 }).x), 'SHAPE_MISMATCH')
    await expectError(() => mixed.predict(x), 'SHAPE_MISMATCH', /4 dense features/)
    // Single queries give what the batch gave.
    for (const i of [0, 7, 199]) {
      const row = both.row(i)
      expect([...(row.dense ?? [])]).toEqual([...values.subarray(4 * i, 4 * i + 4)])
      expect(mixed.predictOne(row, { k: 3 })).toEqual(top.row(i))
    }
  })

  it('refuses dense values that do not fit in single queries', async () => {
    const { x, y } = problem({ rows: 60, labels: 6 })
    const dense = Dense.from({ rows: 60, cols: 2, values: new Float32Array(120).fill(0.3) })
    const mixed = await XLinear.train(Features.from(x, dense), y)
    const { indices, values } = x.row(0)
    const ask = (dense?: unknown) => mixed.predictOne({ indices, values, dense: dense as never })
    expect(ask(new Float32Array(2)).labels.length).toBeGreaterThan(0)
    await expectError(() => ask(), 'SHAPE_MISMATCH', /0 dense values but the model 2/)
    await expectError(() => ask(new Float32Array(3)), 'SHAPE_MISMATCH', /3 dense values/)
    await expectError(() => ask(Float32Array.of(0, Number.NaN)), 'NOT_FINITE', /column 1/)
    await expectError(() => ask([1, 2]), 'INVALID_ARGUMENT', /a Float32Array for dense/)
    const searcher = mixed.searcher()
    await expectError(
      () => searcher.search(indices, values, new Float64Array(2) as never),
      'INVALID_ARGUMENT',
    )
    await expectError(
      () => searcher.search(new Uint32Array([x.cols]), Float32Array.of(1), new Float32Array(2)),
      'INDEX_OUT_OF_RANGE',
    )
    const plain = await XLinear.train(x, y)
    await expectError(
      () => plain.predictOne({ indices, values, dense: new Float32Array(2) }),
      'SHAPE_MISMATCH',
    )
  })

  it('learns from rows that are dense alone', async () => {
    const { x, y } = problem({ rows: 200, labels: 10 })
    const values = new Float32Array(200 * x.cols)
    for (let i = 0; i < 200; i++) {
      const row = x.row(i)
      for (const [at, f] of row.indices.entries()) values[i * x.cols + f] = row.values[at] as number
    }
    const alone = Features.from(undefined, Dense.from({ rows: 200, cols: x.cols, values }))
    expect([alone.rows, alone.cols, alone.row(3).indices.length]).toEqual([200, x.cols, 0])
    const model = await XLinear.train(alone, y, { tree: { maxLeaf: 4 } })
    const report = await evaluate(await model.predict(alone, { k: 1 }), y, { k: [1] })
    expect(report.precision[1]).toBeGreaterThan(0.95)
    await model.save(place('dense.aquila'))
    const again = await XLinear.fromBytes(readFileSync(place('dense.aquila')), { verify: true })
    expect(await again.predict(alone)).toEqual(await model.predict(alone))
  })

  it('gives and takes trees as chains of matrices, through files', async () => {
    const tree = model.tree()
    const chain = tree.toChain()
    const names = chain.map((_, t) => place(`C${t}.npz`))
    await Promise.all(chain.map((matrix, t) => writeNpz(names[t] as string, matrix)))
    const labelTree = LabelTree.fromChain(await Promise.all(names.map((name) => readNpz(name))))
    expect([labelTree.labels, labelTree.layers]).toEqual([tree.labels, tree.layers])
    const own = await XLinear.train(data.x, data.y, { labelTree })
    expect(own.info.layers).toEqual(model.info.layers)
    await expectError(() => LabelTree.fromChain({} as never), 'INVALID_ARGUMENT', /an array of Csr for chain/)
    await expectError(() => LabelTree.fromChain([1] as never), 'INVALID_ARGUMENT', /a Csr for chain\[0\]/)
    await expectError(() => LabelTree.fromChain([]), 'BAD_TREE', /at least one matrix/)
    await expectError(() => LabelTree.fromChain([data.y]), 'BAD_TREE', /one column, the root/)
    const closed = matrix([[[0, 1]]], 1)
    closed.close()
    await expectError(() => LabelTree.fromChain([closed]), 'CLOSED')
  })

  it('takes a tree, label vectors, relevance and negatives of the user', async () => {
    const { x, y } = problem({ rows: 100, labels: 4 })
    const labelTree = LabelTree.fromJson('{ "aquilaTree": 1, "labels": 4, "root": [[0, 3], [1, 2]] }')
    const own = await XLinear.train(x, y, { labelTree })
    expect(own.tree().toJson()).toBe(labelTree.toJson())
    const vectors = matrix([[[0, 1]], [[1, 1]], [[0, 1]], [[1, 1]]], 2)
    await XLinear.train(x, y, { labelVectors: vectors, tree: { maxLeaf: 2 } })
    await XLinear.train(x, y, { relevance: y, solver: { relevance: 'induce' } })
    await XLinear.train(x, y, { negatives: y })
    await expectError(
      () => XLinear.train(x, y, { labelTree: {} as never }),
      'INVALID_ARGUMENT',
      /a LabelTree for labelTree/,
    )
    await expectError(
      () => XLinear.train(x, y, { relevance: [] as never }),
      'INVALID_ARGUMENT',
      /a Csr for relevance/,
    )
    const small = LabelTree.fromJson('{ "aquilaTree": 1, "labels": 2, "root": [0, 1] }')
    await expectError(() => XLinear.train(x, y, { labelTree: small }), 'SHAPE_MISMATCH').catch(() =>
      expectError(() => XLinear.train(x, y, { labelTree: small }), 'BAD_TREE'),
    )
  })
})

describe('saving and opening', () => {
  it('gives the same answers, from a file and from bytes', async () => {
    await model.save(place('m.aquila'))
    const top = await model.predict(data.x)
    const opened = await XLinear.open(place('m.aquila'), { verify: true })
    expect(await opened.predict(data.x)).toEqual(top)
    expect(opened.report).toBeUndefined()
    expect({ ...opened.info, mapped: false }).toEqual({ ...model.info, mapped: false })
    expect(opened.info.mapped).toBe(true)
    expect(opened.labelNames).toEqual(model.labelNames)
    await opened.verify()
    const bytes = readFileSync(place('m.aquila'))
    const held = await XLinear.fromBytes(bytes)
    bytes.fill(0)
    expect(await held.predict(data.x)).toEqual(top)
    expect(held.info.mapped).toBe(false)
  })

  it('reloads without downtime: a new file over the old name is another model', async () => {
    const path = place('live.aquila')
    await model.save(path)
    const before = await XLinear.open(path)
    const other = await XLinear.train(data.x, data.y, { labelNames: Array(40).fill('new') })
    await other.save(path)
    const after = await XLinear.open(path)
    expect([before.labelNames[0], after.labelNames[0]]).toEqual(['label 0', 'new'])
    expect((await before.predict(data.x)).rows).toBe(data.x.rows)
  })

  it('refuses foreign, cut and altered files', async () => {
    await model.save(place('bad.aquila'))
    const whole = readFileSync(place('bad.aquila'))
    truncateSync(place('bad.aquila'), whole.length - 100)
    await expectError(() => XLinear.open(place('bad.aquila')), 'BAD_MODEL')
    writeFileSync(place('bad.aquila'), 'no model')
    await expectError(() => XLinear.open(place('bad.aquila')), 'BAD_MODEL')
    writeFileSync(place('bad.aquila'), '')
    await expectError(() => XLinear.open(place('bad.aquila')), 'BAD_MODEL')
    await expectError(() => XLinear.fromBytes(whole.subarray(0, 50)), 'BAD_MODEL')
    const altered = Buffer.from(whole)
    altered[whole.length >> 1] = (altered[whole.length >> 1] as number) ^ 0x10
    await expect(XLinear.fromBytes(altered, { verify: true })).rejects.toBeInstanceOf(AquilaError)
    await expectError(() => XLinear.open(place('missing')), 'IO', /missing/)
    await expectError(() => XLinear.open(3 as never), 'INVALID_ARGUMENT', /for path/)
    await expectError(() => XLinear.open(place('x'), { check: true } as never), 'UNKNOWN_OPTION')
    await expectError(() => XLinear.fromBytes('x' as never), 'INVALID_ARGUMENT', /a Uint8Array for bytes/)
    await expectError(() => model.save(place('no/folder/m')), 'IO')
    expect(existsSync(place('no'))).toBe(false)
  })
})

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

describe('closing', () => {
  it('makes every later use a CLOSED error, but lets running predictions end', async () => {
    await model.save(place('closing.aquila'))
    const short = await XLinear.open(place('closing.aquila'))
    expect(short.info.labels).toBe(40)
    const x = problem().x
    const running = short.predict(x)
    short.close()
    short[Symbol.dispose]()
    x.close()
    expect((await running).rows).toBe(600)
    expect(short.isOpen).toBe(false)
    for (const use of [
      () => short.predict(data.x),
      () => short.save(place('never')),
      () => short.verify(),
      () => short.searcher(),
      () => short.tree(),
      () => short.info,
      () => short.labelNames,
      () => short.labelName(0),
    ])
      await expectError(use, 'CLOSED', /the model is closed/)
    expect(existsSync(place('never'))).toBe(false)
    await expectError(() => model.predict(x), 'CLOSED', /the matrix is closed/)
    await expectError(() => XLinear.train(x, data.y), 'CLOSED', /the matrix is closed/)
  })
})

describe('options', () => {
  const endless: Record<string, unknown> = {}
  endless.tree = endless
  const bad: [string, unknown, Parameters<typeof expectError>[1], RegExp][] = [
    [
      'an unknown name',
      { tree: { maxLeav: 3 } },
      'UNKNOWN_OPTION',
      /tree\.maxLeav; did you mean tree\.maxLeaf\?/,
    ],
    ['an unknown group', { trees: { maxLeaf: 3 } }, 'UNKNOWN_OPTION', /trees\.maxLeaf/],
    ['an unknown name without a group', { maxLeaf: 3 }, 'UNKNOWN_OPTION', /maxLeaf/],
    ['an unknown object', { plans: null }, 'UNKNOWN_OPTION', /plans/],
    [
      'a value out of range',
      { tree: { maxLeaf: 0 } },
      'INVALID_ARGUMENT',
      /an integer from 1 to \d+ for tree\.maxLeaf but received 0/,
    ],
    ['a fraction', { tree: { maxLeaf: 1.5 } }, 'INVALID_ARGUMENT', /received 1\.5/],
    ['NaN', { solver: { cp: Number.NaN } }, 'INVALID_ARGUMENT', /received NaN/],
    ['a text for a number', { tree: { maxLeaf: '3' } }, 'INVALID_ARGUMENT', /received "3" of type string/],
    ['null', { tree: { maxLeaf: null } }, 'INVALID_ARGUMENT', /received null of type object/],
    ['a group that is no object', { tree: 3 }, 'INVALID_ARGUMENT', /an object for tree but received 3/],
    ['a wrong choice', { solver: { loss: 'cubic' } }, 'INVALID_ARGUMENT', /squared-hinge, hinge, logistic/],
    [
      'a number for a truth value',
      { model: { normalize: 1 } },
      'INVALID_ARGUMENT',
      /true or false for model\.normalize/,
    ],
    ['names that are no texts', { labelNames: [1] }, 'INVALID_ARGUMENT', /labelNames\[0\]/],
    ['too few names', { labelNames: ['one'] }, 'SHAPE_MISMATCH', /./],
    ['no object', 3, 'INVALID_ARGUMENT', /an object for options/],
    ['a map', new Map([['k', 3]]), 'INVALID_ARGUMENT', /an object for options but received Map/],
    ['a promise', Promise.resolve({}), 'INVALID_ARGUMENT', /an object for options but received Promise/],
    ['a name that every object has', JSON.parse('{ "__proto__": 1 }'), 'UNKNOWN_OPTION', /__proto__/],
    ['a value without a text', { plans: Object.create(null) }, 'UNKNOWN_OPTION', /plans/],
    ['groups in groups without end', endless, 'UNKNOWN_OPTION', /tree\.tree/],
    ['metadata without end', { metadata: endless }, 'INVALID_ARGUMENT', /a JSON value for metadata/],
    ['metadata that JSON lacks', { metadata: () => 1 }, 'INVALID_ARGUMENT', /a JSON value for metadata/],
  ]
  it.each(bad)('refuse %s', async (_, options, code, message) => {
    await expectError(() => XLinear.train(data.x, data.y, options as never), code, message)
  })

  it('are checked for prediction and calls as well', async () => {
    await expectError(
      () => model.predict(data.x, { beams: 3 } as never),
      'UNKNOWN_OPTION',
      /did you mean beam/,
    )
    await expectError(() => model.predict(data.x, { k: 0 }), 'INVALID_ARGUMENT', /for k but received 0/)
    await expectError(
      () => model.predictOne(data.x.row(0), { k: 5n } as never),
      'INVALID_ARGUMENT',
      /options/,
    )
    for (const floor of [Number.NaN, Number.NEGATIVE_INFINITY, '0'])
      await expectError(
        () => model.predict(data.x, { floor } as never),
        'INVALID_ARGUMENT',
        /^Expected a finite number for floor but received/,
      )
    await expectError(() => model.searcher({ scores: 'best' as never }), 'INVALID_ARGUMENT', /l3-hinge/)
    await expectError(() => model.predict(data.x, {}, { thread: 1 } as never), 'UNKNOWN_OPTION', /thread/)
    await expectError(
      () => model.predict(data.x, {}, { threads: -1 }),
      'INVALID_ARGUMENT',
      /for threads but received -1/,
    )
    await expectError(() => model.predict(data.x, {}, { seed: 0.5 }), 'INVALID_ARGUMENT', /seed/)
    await expectError(
      () => model.predict(data.x, {}, { signal: {} as never }),
      'INVALID_ARGUMENT',
      /an AbortSignal for signal/,
    )
    await expectError(
      () => model.predict(data.x, {}, { onProgress: 1 as never }),
      'INVALID_ARGUMENT',
      /a function for onProgress/,
    )
  })

  it('resolve to all values, defaults included', async () => {
    const all = trainParameters({ tree: { maxLeaf: 7 } })
    expect([all['tree.maxLeaf'], all['tree.arity'], Object.isFrozen(all)]).toEqual([7, 64, true])
    await expectError(() => trainParameters({ tree: { maxLeaf: -7 } }), 'INVALID_ARGUMENT')
  })
})

describe('shapes', () => {
  it('must fit', async () => {
    await expectError(() => XLinear.train(data.x, matrix([[[0, 1]]], 40)), 'SHAPE_MISMATCH', /600/)
    await expectError(
      () => model.predict(matrix([[]], 141)),
      'SHAPE_MISMATCH',
      /141 columns but the model 140/,
    )
    // Fewer columns are fine: a test file may lack the last features.
    expect((await model.predict(matrix([[[0, 1]]], 1))).rows).toBe(1)
    await expectError(() => XLinear.train([] as never, data.y), 'INVALID_ARGUMENT', /a Csr or Features for x/)
    await expectError(() => XLinear.train(data.x, undefined as never), 'INVALID_ARGUMENT', /a Csr for y/)
    await expectError(() => model.predict({} as never), 'INVALID_ARGUMENT', /for x/)
  })

  it('may be empty where that means something', async () => {
    expect((await model.predict(matrix([], 140))).rows).toBe(0)
    const blank = await model.predict(matrix([[], []], 140), { k: 3 })
    expect(blank.rows).toBe(2)
    // A label without rows and a row without labels or features train all the same.
    const odd = await XLinear.train(matrix([[[0, 1]], [], [[1, 1]]], 2), matrix([[[0, 1]], [[1, 1]], []], 3))
    expect((await odd.predict(matrix([[[0, 1]]], 2), { k: 1 })).labels[0]).toBe(0)
  })
})

describe('memory', () => {
  it('is forecast and limited', async () => {
    const bytes = await forecast(data.x, data.y)
    expect(bytes).toBeGreaterThan(1000)
    await expectError(
      () => XLinear.train(data.x, data.y, {}, { memoryLimit: 1000 }),
      'MEMORY_LIMIT',
      /forecast to need [\d.]+ kB, more than the limit of 1 kB: raise/,
    )
    await expectError(() => forecast(data.x, data.y, { tree: { x: 1 } } as never), 'UNKNOWN_OPTION')
  })
})

describe('errors', () => {
  it('carry the stack of the call', async () => {
    async function caller() {
      await XLinear.train(data.x, matrix([], 40))
    }
    const error = await expectError(caller, 'SHAPE_MISMATCH')
    expect(error.stack).toMatch(/^AquilaError \[SHAPE_MISMATCH\]: /)
    expect(error.stack).toContain('caller')
  })
})

describe('runtime', () => {
  it('tells what it is', () => {
    expect(runtime.threads()).toBeGreaterThan(0)
    expect(runtime.simd().available).toContain(runtime.simd().used)
    expect(runtime.versions()).toEqual({ aquila: '0.1.0', node: process.versions.node })
  })
})
