// Embeddings of labels that are known for groups only.

import { type Csr, Dense, eagle, evaluate, Features, Groups, type Progress, XLinear } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectError, matrix, type Problem, problem, rowsOf } from './helpers.js'

let data: Problem
let groups: Groups
let bags: Csr

beforeAll(async () => {
  data = problem()
  groups = Groups.random(600, 4)
  bags = await groups.aggregate(data.y)
})

describe('eagle.embed', () => {
  it('learns what an assignment learns', async () => {
    for (const options of [{}, { iterations: 0 }, { step: 0.5, normalize: false }]) {
      const { embeddings, seconds } = await eagle.embed(data.x, groups, bags, options)
      const { embeddings: same } = await eagle.assign(data.x, groups, bags, { ...options, embeddings: true })
      expect(embeddings.toArrays()).toEqual(same?.toArrays())
      expect(seconds).toBeGreaterThan(0)
    }
  })

  it('gives dense ones with all zeros', async () => {
    const { embeddings } = await eagle.embed(data.x, groups, bags)
    const { embeddings: dense } = await eagle.embed(data.x, groups, bags, { dense: true })
    expect(dense).toBeInstanceOf(Dense)
    expect([dense.rows, dense.cols]).toEqual([40, 140])
    const wanted = new Float32Array(40 * 140)
    rowsOf(embeddings).forEach((row, k) => {
      for (const [f, v] of row) wanted[k * 140 + f] = v
    })
    expect(dense.toArray()).toEqual(wanted)
  })

  it('finds labels by products, and serves as label vectors', async () => {
    const { embeddings } = await eagle.embed(data.x, groups, bags)
    const rows = rowsOf(embeddings).map((row) => new Map(row))
    const nearest = rowsOf(data.x).map((x) => {
      const similar = rows.map((e) => x.reduce((sum, [f, v]) => sum + v * (e.get(f) ?? 0), 0))
      return similar.indexOf(Math.max(...similar))
    })
    const right = nearest.filter((k, i) => data.truth[i]?.includes(k)).length
    expect(right / 600).toBeGreaterThan(0.9)
    const model = await XLinear.train(data.x, data.y, { labelVectors: embeddings, tree: { maxLeaf: 8 } })
    const { precision } = await evaluate(await model.predict(data.x, { k: 1 }), data.y, { k: [1] })
    expect(precision[1]).toBeGreaterThan(0.95)
  })

  it('leaves labels without samples empty', async () => {
    const one = Groups.fromMemberships(matrix([[[0, 1]], []], 2))
    const of = matrix([[[0, 1]], [[2, 1]]], 3)
    const { embeddings } = await eagle.embed(matrix([[[1, 2]], [[0, 1]]], 2), one, of)
    expect(rowsOf(embeddings)).toEqual([[[1, 1]], [], []])
    const nothing = await eagle.embed(matrix([], 3), Groups.from(new Int32Array()), matrix([], 2))
    expect([nothing.embeddings.rows, nothing.embeddings.cols, nothing.embeddings.nnz]).toEqual([2, 3, 0])
  })

  it('takes a dense block', async () => {
    const values = Float32Array.from({ length: 1200 }, (_, n) => n % 3)
    const x = Features.from(data.x, Dense.from({ rows: 600, cols: 2, values }))
    expect((await eagle.embed(x, groups, bags)).embeddings.cols).toBe(142)
  })

  it('is the same for any number of threads, and tells of its progress', async () => {
    const seen: Progress[] = []
    const onProgress = (progress: Progress) => seen.push({ ...progress })
    const of = async (threads: number) =>
      (await eagle.embed(data.x, groups, bags, {}, { threads, onProgress })).embeddings.toArrays()
    expect(await of(1)).toEqual(await of(4))
    expect([...new Set(seen.map(({ stage }) => stage))]).toEqual(['forecast', 'embed'])
    expect(seen.at(-1)).toMatchObject({ rows: 600, labels: 40, done: seen.at(-1)?.total })
  })

  it('refuses what does not fit', async () => {
    const wrong = (options: object) => () => eagle.embed(data.x, groups, bags, options)
    await expectError(wrong({ iteration: 2 }), 'UNKNOWN_OPTION', /did you mean iterations/)
    await expectError(wrong({ embeddings: true }), 'UNKNOWN_OPTION', /embeddings/)
    await expectError(wrong({ dense: 1 }), 'INVALID_ARGUMENT', /true or false for dense/)
    await expectError(
      () => eagle.embed(data.x, groups, data.y),
      'SHAPE_MISMATCH',
      /150 groups but bags has 600/,
    )
    await expectError(() => eagle.embed({} as never, groups, bags), 'INVALID_ARGUMENT', /for x/)
    const tight = () => eagle.embed(data.x, groups, bags, { dense: true }, { memoryLimit: 1000 })
    await expectError(tight, 'MEMORY_LIMIT', /40 dense embeddings of 140 features/)
    const sparse = () => eagle.embed(data.x, groups, bags, {}, { memoryLimit: 1000 })
    await expectError(sparse, 'MEMORY_LIMIT', /embedding is forecast to need/)
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(eagle.embed(data.x, groups, bags, {}, { signal })).rejects.toBe(signal.reason)
  })
})
