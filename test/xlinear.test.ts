import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  Dense,
  evaluate,
  Features,
  forecast,
  LabelTree,
  readNpz,
  runtime,
  writeNpz,
  XLinear,
} from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, folder, learned, matrix, problem } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)
const { data, model } = await learned()

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
    const { x, y, truth } = problem({ rows: 100, labels: 4 })
    const labelTree = LabelTree.fromJson('{ "aquilaTree": 1, "labels": 4, "root": [[0, 3], [1, 2]] }')
    const own = await XLinear.train(x, y, { labelTree })
    expect(own.tree().toJson()).toBe(labelTree.toJson())
    // Even and odd labels, told apart by the vectors and by nothing in the rows.
    const vectors = matrix([[[0, 1]], [[1, 1]], [[0, 1]], [[1, 1]]], 2)
    const shaped = await XLinear.train(x, y, { labelVectors: vectors, tree: { maxLeaf: 2, arity: 2 } })
    const leaves = (JSON.parse(shaped.tree().toJson()) as { root: number[][] }).root
    expect(leaves.map((leaf) => leaf.toSorted()).toSorted()).toEqual([
      [0, 2],
      [1, 3],
    ])
    // The mean margin of label 0 in rows of their own.
    const margin = async (of: XLinear, rows: number[]) => {
      const chosen = matrix(
        Array.from({ length: x.rows }, (_, i): [number, number][] => (rows.includes(i) ? [[0, 1]] : [])),
        4,
      )
      const { scores } = await of.predict(x, { chosen, scores: 'noop' })
      expect(scores.length).toBe(rows.length)
      return scores.reduce((sum, score) => sum + score, 0) / scores.length
    }
    const rows = (wanted: (labels: number[]) => boolean) =>
      truth.flatMap((own, i) => (wanted(own) ? [i] : []))
    const [zeros, strangers] = [
      rows((labels) => labels.includes(0)),
      rows((labels) => !labels.includes(0) && !labels.includes(3)),
    ]
    // What matters little is not learned so well.
    const weighed = truth.map((own) => own.map((label): [number, number] => [label, label === 0 ? 0.001 : 1]))
    const relevance = matrix(weighed, 4)
    const careless = await XLinear.train(x, y, { labelTree, relevance, solver: { relevance: 'induce' } })
    expect(await margin(careless, zeros)).toBeLessThan((await margin(own, zeros)) - 0.2)
    // The tree shows label 0 no rows but those of 0 and 3; negatives show it others too.
    const shown = truth.map((_, i): [number, number][] => (strangers.includes(i) ? [[0, 1]] : []))
    const taught = await XLinear.train(x, y, { labelTree, negatives: matrix(shown, 4) })
    expect(await margin(taught, strangers)).toBeLessThan((await margin(own, strangers)) - 0.2)
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
    // A training keeps the tree that it was given; no other gets it.
    const [given, json] = [LabelTree.fromJson(labelTree.toJson()), labelTree.toJson()]
    const running = XLinear.train(x, y, { labelTree: given })
    given.close()
    expect((await running).tree().toJson()).toBe(json)
    await expectError(() => XLinear.train(x, y, { labelTree: given }), 'CLOSED', /the tree is closed/)
    const small = LabelTree.fromJson('{ "aquilaTree": 1, "labels": 2, "root": [0, 1] }')
    await expectError(() => XLinear.train(x, y, { labelTree: small }), 'SHAPE_MISMATCH', /2 labels/)
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
