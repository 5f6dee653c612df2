// Labels of groups refined to labels of samples, and models straight from groups.

import { Csr, Dense, eagle, evaluate, Features, Groups, type Progress, XLinear } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectError, hardProblem, matrix, type Problem, problem, sleep } from './helpers.js'

let data: Problem
let groups: Groups
let bags: Csr

beforeAll(async () => {
  data = problem({ rows: 1200 })
  groups = Groups.random(1200, 4)
  bags = await groups.aggregate(data.y, { merge: 'set' })
})

/** `[sample, label, value]` of every entry. */
function entries(y: Csr): [number, number, number][] {
  const { indptr, indices, values } = y.toArrays()
  return Array.from({ length: y.rows }, (_, i) => i).flatMap((i) =>
    Array.from(indices.subarray(indptr[i], indptr[i + 1]), (k, n): [number, number, number] => [
      i,
      k,
      values[(indptr[i] as number) + n] as number,
    ]),
  )
}

describe('eagle.refine', () => {
  it('finds what the samples of random groups have', async () => {
    const { y, likeness, threshold, seconds } = await eagle.refine(data.x, groups, bags)
    expect([y.rows, y.cols]).toEqual([1200, 40])
    const found = entries(y)
    for (const [, , confidence] of found) {
      expect(confidence).toBeGreaterThan(0)
      expect(confidence).toBeLessThanOrEqual(1)
    }
    const right = found.filter(([i, k]) => data.truth[i]?.includes(k)).length
    const { y: assigned } = await eagle.assign(data.x, groups, bags)
    const before = entries(assigned).filter(([i, k]) => data.truth[i]?.includes(k)).length
    expect(right / found.length).toBeGreaterThan(0.9)
    expect(right / data.y.nnz).toBeGreaterThan(0.85)
    expect(right).toBeGreaterThan(before)
    expect(likeness).toBeGreaterThanOrEqual(0)
    expect(likeness).toBeLessThan(0.05)
    expect(threshold).toBeGreaterThan(0.3)
    expect(threshold).toBeLessThanOrEqual(0.45 + 1e-6)
    expect(seconds).toBeGreaterThan(0)
  })

  it('is the same for any number of threads, and other for another seed', async () => {
    const of = async (threads: number, seed: number) =>
      (await eagle.refine(data.x, groups, bags, { rounds: 1 }, { threads, seed })).y.toArrays()
    const one = await of(1, 3)
    expect(await of(3, 3)).toEqual(one)
    expect(await of(1, 4)).not.toEqual(one)
  })

  it('is forecast and limited, alone and on the way to a model', async () => {
    const call = { memoryLimit: 1000 }
    await expectError(
      () => eagle.refine(data.x, groups, bags, {}, call),
      'MEMORY_LIMIT',
      /refinement is forecast/,
    )
    await expectError(
      () => eagle.assign(data.x, groups, bags, {}, call),
      'MEMORY_LIMIT',
      /assignment is forecast/,
    )
    const learning = () => XLinear.trainGroups(data.x, groups, bags, {}, call)
    await expectError(learning, 'MEMORY_LIMIT', /learning from groups is forecast/)
    const { report } = await XLinear.trainGroups(data.x, groups, bags, {}, { memoryLimit: 1e9 })
    expect(report?.forecastBytes).toBeGreaterThan(1000)
  })

  it('takes dense rows too', async () => {
    const dense = Dense.from({ rows: 1200, cols: 2, values: new Float32Array(2400).fill(0.1) })
    const { y } = await eagle.refine(Features.from(data.x, dense), groups, bags, { rounds: 0 })
    const right = entries(y).filter(([i, k]) => data.truth[i]?.includes(k)).length
    expect(right / y.nnz).toBeGreaterThan(0.85)
  })

  it('tells of its progress', async () => {
    const seen: Progress[] = []
    const onProgress = (progress: Progress) => seen.push({ ...progress })
    await eagle.refine(data.x, groups, bags, { rounds: 1, folds: 2 }, { onProgress })
    const [first, ...later] = seen
    expect(first).toMatchObject({ stage: 'forecast', done: 1, total: 1, rows: 1200, labels: 40 })
    expect(first?.forecastBytes).toBeGreaterThan(data.x.nnz * 8)
    expect(new Set(later.map(({ stage, total }) => `${stage} ${total}`))).toEqual(new Set(['refine 4']))
    expect(later.every(({ forecastBytes }) => forecastBytes === undefined)).toBe(true)
    expect(seen.at(-1)).toMatchObject({ done: 4, rows: 1200, labels: 40 })
  })

  it('is ended by a signal', async () => {
    const aborted = AbortSignal.abort(new Error('enough'))
    await expect(eagle.refine(data.x, groups, bags, {}, { signal: aborted })).rejects.toBe(aborted.reason)
    const { x, y } = hardProblem()
    const many = Groups.random(x.rows, 10)
    const of = await many.aggregate(y)
    for (const after of [0, 60, 300]) {
      const controller = new AbortController()
      const reason = new Error('enough')
      const running = eagle.refine(
        x,
        many,
        of,
        { rounds: 100, folds: 100 },
        { threads: 1, signal: controller.signal },
      )
      const failed = expect(running).rejects.toBe(reason)
      await sleep(after)
      const since = performance.now()
      controller.abort(reason)
      await failed
      expect(performance.now() - since).toBeLessThan(1000)
    }
  })

  it('refuses what does not fit', async () => {
    const wrong = (options: object) => () => eagle.refine(data.x, groups, bags, options)
    await expectError(wrong({ round: 2 }), 'UNKNOWN_OPTION', /did you mean rounds/)
    await expectError(wrong({ rounds: -1 }), 'INVALID_ARGUMENT', /for rounds/)
    await expectError(wrong({ folds: 1 }), 'INVALID_ARGUMENT', /for folds/)
    await expectError(wrong({ threshold: 1.5 }), 'INVALID_ARGUMENT', /for threshold/)
    const other = Groups.random(1199, 4)
    await expectError(() => eagle.refine(data.x, other, bags), 'SHAPE_MISMATCH', /1200 rows .* 1199 samples/)
    await expectError(
      () => eagle.refine(data.x, groups, data.y),
      'SHAPE_MISMATCH',
      /300 groups but bags has 1200 rows/,
    )
    await expectError(() => eagle.refine({} as never, groups, bags), 'INVALID_ARGUMENT', /for x/)
  })

  it('answers for empty groups, groups without labels and samples of no group', async () => {
    const x = matrix([[[0, 1]], [[1, 1]], [], [[0, 1]]], 2)
    const some = Groups.from(new Int32Array([0, 0, 2, -1]))
    const { y } = await eagle.refine(x, some, matrix([[[1, 1]], [[0, 1]], []], 2))
    const found = entries(y)
    expect(found.length).toBeGreaterThan(0)
    expect(new Set(found.map(([i, k]) => `${i < 2} ${k}`))).toEqual(new Set(['true 1']))
  })
})

describe('advise', () => {
  it('says what groups are like and what to do', async () => {
    const { method, reasons, statistics } = await groups.advise(data.x, bags)
    expect(method).toBe('refine')
    expect(statistics).toMatchObject({ groups: 300, samples: 1200, size: 4, largest: 4, labels: 40 })
    expect(statistics.labelsOfGroup).toBeCloseTo(bags.nnz / 300, 9)
    expect(reasons[0]).toMatch(/4\.0 samples/)
    const ones = Groups.from(Int32Array.from({ length: 1200 }, (_, i) => i))
    expect((await ones.advise(data.x, data.y)).method).toBe('union')
    await expectError(() => groups.advise(data.x, data.y), 'SHAPE_MISMATCH', /300 groups/)
    await expectError(() => groups.advise({} as never, bags), 'INVALID_ARGUMENT', /for x/)
  })
})

describe('XLinear.trainGroups', () => {
  const P1 = async (model: XLinear) => {
    const report = await evaluate(await model.predict(data.x, { k: 1 }), data.y, { k: [1] })
    return report.precision[1] as number
  }

  it('learns by each method, refinement best', async () => {
    const learned = async (method: 'union' | 'eagle' | 'refine') =>
      P1(await XLinear.trainGroups(data.x, groups, bags, { group: { method } }))
    const [all, one, refined] = [await learned('union'), await learned('eagle'), await learned('refine')]
    expect(refined).toBeGreaterThan(0.95)
    expect(refined).toBeGreaterThanOrEqual(Math.max(all, one))
  })

  it('refines by default, and keeps names and parameters', async () => {
    const labelNames = Array.from({ length: 40 }, (_, k) => `label ${k}`)
    const options = { labelNames, metadata: { from: 'groups' }, tree: { maxLeaf: 10 } }
    const model = await XLinear.trainGroups(data.x, groups, bags, options, { seed: 5 })
    expect(model.labelNames).toEqual(labelNames)
    expect(model.info).toMatchObject({ metadata: { from: 'groups' }, seed: 5, labels: 40 })
    expect(model.info.params['tree.maxLeaf']).toBe(10)
    expect(model.report?.seconds.total).toBeGreaterThan(0)
  })

  it('refuses what does not fit', async () => {
    const wrong = (options: object) => () => XLinear.trainGroups(data.x, groups, bags, options)
    await expectError(wrong({ group: { method: 'best' } }), 'INVALID_ARGUMENT', /for group.method/)
    await expectError(wrong({ group: { round: 1 } }), 'UNKNOWN_OPTION', /group.rounds/)
    await expectError(wrong({ relevance: data.y }), 'UNKNOWN_OPTION', /relevance/)
    const noLabels = Csr.from({
      rows: 300,
      cols: 40,
      indptr: new Uint32Array(301),
      indices: new Uint32Array(0),
      values: new Float32Array(0),
    })
    await expectError(
      () => XLinear.trainGroups(data.x, groups, noLabels),
      'INVALID_ARGUMENT',
      /no sample stands in a group with labels/,
    )
  })
})
