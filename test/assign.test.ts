// Labels of groups assigned to samples, and the baseline.

import {
  type Csr,
  Dense,
  eagle,
  evaluate,
  Features,
  Groups,
  type Progress,
  readNpz,
  writeNpz,
} from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  expectError,
  folder,
  groupsOf,
  hardProblem,
  matrix,
  membersOf,
  type Problem,
  problem,
  type Row,
  random,
  rowsOf,
  sleep,
} from './helpers.js'

const dir = folder()
let data: Problem

beforeAll(() => {
  data = problem()
})

/** A label of a group, and the sample that it goes to. */
interface Choice {
  sample: number
  label: number
  similarity: number
  /** The least distance, over all rounds, between a best similarity and another: below some, rounding decides. */
  margin: number
}

const dot = (a: number[], b: number[]) => a.reduce((sum, v, f) => sum + v * (b[f] as number), 0)
const proj = (v: number[]) => {
  const length = Math.sqrt(dot(v, v))
  return length < 1e-9 ? v : v.map((entry) => entry / length)
}

/** The formulas of the engine's page on group robust label representation, word by word. */
function naive(x: Csr, groups: Groups, bags: Csr, iterations: number, step: number) {
  const rows = rowsOf(x).map((row) => {
    const full = new Array<number>(x.cols).fill(0)
    for (const [f, v] of row) full[f] = v
    return proj(full)
  })
  const [members, labels] = [membersOf(groups), rowsOf(bags)]
  const row = (i: number) => rows[i] as number[]
  const choices: Choice[] = []
  const embeddings: number[][] = []
  for (let label = 0; label < bags.cols; label++) {
    const carriers = labels.flatMap((bag, j) => {
      const count = bag.find(([k]) => k === label)?.[1]
      const samples = members[j] as number[]
      return count && samples.length > 0 ? [{ samples, count }] : []
    })
    let margin = Number.POSITIVE_INFINITY
    let e: number[] = []
    const sum = (pick: (samples: number[]) => number[]) => {
      const total = new Array<number>(x.cols).fill(0)
      for (const { samples, count } of carriers)
        for (const i of pick(samples))
          row(i).forEach((v, f) => {
            total[f] = (total[f] as number) + count * v
          })
      return total
    }
    const best = (samples: number[]) => {
      const similar = samples.map((i) => dot(e, row(i)))
      const most = Math.max(...similar)
      const chosen = samples.filter((_, n) => similar[n] === most)
      // Equal rows are tied for good; others are tied by chance.
      for (const [n, i] of samples.entries())
        if (row(i).some((v, f) => v !== row(chosen[0] as number)[f]))
          margin = Math.min(margin, most - (similar[n] as number))
      return chosen
    }
    e = proj(sum((samples) => samples))
    for (let t = 0; t < iterations; t++) {
      const g = proj(sum(best))
      e = proj(e.map((v, f) => v + step * (g[f] as number)))
    }
    const own = carriers.map(({ samples }) => best(samples)[0] as number)
    for (const sample of own) choices.push({ sample, label, similarity: dot(e, row(sample)), margin })
    embeddings.push(e)
  }
  return { choices, embeddings }
}

/** Small random samples, some of them in several groups, some in none, some without features. */
function randomBags(seed: number) {
  const next = random(seed)
  const pick = (n: number) => Math.floor(next() * n)
  const [samples, features, labels, size] = [20 + pick(60), 8 + pick(30), 2 + pick(10), 3 + pick(15)]
  const signed = seed % 2 === 0
  const some = (n: number, below: number, value: () => number): Row => {
    const ids = new Set<number>()
    while (ids.size < n) ids.add(pick(below))
    return [...ids].map((id) => [id, value()])
  }
  const value = () => (signed ? next() * 2 - 1 : 0.1 + next())
  const x = matrix(
    Array.from({ length: samples }, () => some(next() < 0.05 ? 0 : 1 + pick(6), features, value)),
    features,
  )
  const memberships = Array.from({ length: samples }, () =>
    some([0, 1, 1, 1, 1, 2][pick(6)] ?? 1, size, () => 1),
  )
  const bags = Array.from({ length: size }, () => some(pick(Math.min(4, labels)), labels, () => 1 + pick(3)))
  return { x, groups: Groups.fromMemberships(matrix(memberships, size)), bags: matrix(bags, labels) }
}

describe('eagle.assign', () => {
  /** Two pages of three paragraphs: both have the label, and word 0 is what they share. */
  const toy = {
    x: matrix([[[1, 1]], [[0, 1], [2, 1]], [[3, 1]], [[4, 1]], [[5, 1]], [[0, 1], [6, 1]]], 7), // biome-ignore format: a table
    groups: Groups.from(new Int32Array([0, 0, 0, 1, 1, 1])),
    bags: matrix([[[0, 1]], [[0, 1]]], 1),
  }

  it('finds the samples that share a word', async () => {
    const { y, embeddings, seconds } = await eagle.assign(toy.x, toy.groups, toy.bags)
    expect([y.rows, y.cols]).toEqual([6, 1])
    expect(rowsOf(y).map((row) => row.length)).toEqual([0, 1, 0, 0, 0, 1])
    const [, [[, similarity] = [0, 0]] = []] = rowsOf(y)
    expect(similarity).toBeGreaterThan(0.5)
    expect(similarity).toBeLessThanOrEqual(1)
    expect(embeddings).toBeUndefined()
    expect(seconds).toBeGreaterThan(0)
  })

  it('gives back the labels of groups of one, and their mean rows as embeddings', async () => {
    const groups = Groups.from(Int32Array.from({ length: 600 }, (_, i) => i))
    const bags = await groups.aggregate(data.y)
    const { y, embeddings } = await eagle.assign(data.x, groups, bags, { embeddings: true })
    expect(rowsOf(y).map((row) => row.map(([k]) => k))).toEqual(data.truth)
    const { embeddings: want } = naive(data.x, groups, bags, 0, 0.1)
    rowsOf(embeddings as Csr).forEach((row, k) => {
      for (const [f, v] of row) expect(v).toBeCloseTo(want[k]?.[f] as number, 5)
    })
  })

  it('agrees with the formulas', async () => {
    let [compared, doubtful] = [0, 0]
    for (let seed = 1; seed <= 120; seed++) {
      const { x, groups, bags } = randomBags(seed)
      const iterations = [20, 0, 1, 5, 60][seed % 5] as number
      const step = [0.1, 0.5, 3][seed % 3] as number
      const options = { iterations, step, embeddings: true }
      const { y, embeddings } = await eagle.assign(x, groups, bags, options, { threads: 2 })
      const { choices, embeddings: wanted } = naive(x, groups, bags, iterations, step)
      const unclear = new Set(choices.filter(({ margin }) => margin <= 1e-6).map(({ label }) => label))
      const want = new Map<string, number>()
      for (const { sample, label, similarity } of choices) {
        const key = `seed ${seed}: ${sample} ${label}`
        if (!unclear.has(label)) want.set(key, Math.max(want.get(key) ?? -1, similarity))
      }
      const got = rowsOf(y).flatMap((row, i) =>
        row
          .filter(([k]) => !unclear.has(k))
          .map(([k, s]): [string, number] => [`seed ${seed}: ${i} ${k}`, s]),
      )
      expect(got.map(([key]) => key).sort()).toEqual([...want.keys()].sort())
      for (const [key, similarity] of got) expect(similarity).toBeCloseTo(want.get(key) as number, 4)
      rowsOf(embeddings as Csr).forEach((row, k) => {
        if (!unclear.has(k)) for (const [f, v] of row) expect(v).toBeCloseTo(wanted[k]?.[f] as number, 4)
      })
      compared += want.size
      doubtful += unclear.size
    }
    expect(compared).toBeGreaterThan(1000)
    expect(doubtful).toBeLessThan(compared / 2)
  })

  it('assigns every label of every group that has samples', async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const { x, groups, bags } = randomBags(seed)
      const own = rowsOf((await eagle.assign(x, groups, bags)).y).map((row) => new Set(row.map(([k]) => k)))
      const members = membersOf(groups)
      const allowed = groupsOf(groups).map(() => new Set<number>())
      rowsOf(bags).forEach((bag, j) => {
        for (const [k] of bag) {
          const samples = members[j] as number[]
          for (const i of samples) allowed[i]?.add(k)
          if (samples.length > 0)
            expect(samples.filter((i) => own[i]?.has(k)).length).toBeGreaterThanOrEqual(1)
        }
      })
      // And no sample gets a label that none of its groups has.
      own.forEach((labels, i) => {
        for (const k of labels) expect(allowed[i]?.has(k)).toBe(true)
      })
    }
  })

  it('gives one sample of a group a label, though others are the same', async () => {
    const x = matrix([[[0, 1]], [[0, 2]], [[1, 1]], [[0, 1]]], 2)
    const { y } = await eagle.assign(x, Groups.from(new Int32Array([0, 0, 0, 1])), toy.bags)
    expect(rowsOf(y).map((row) => row.length)).toEqual([1, 0, 0, 1])
  })

  it('lets no label of a group without samples go astray', async () => {
    const groups = Groups.fromMemberships(matrix([[[0, 1]], [[0, 1]]], 2))
    const { y, embeddings } = await eagle.assign(
      matrix([[[0, 1]], [[1, 1]]], 2),
      groups,
      matrix([[[0, 1]], [[1, 1]]], 3),
      { embeddings: true },
    )
    expect([y.cols, y.nnz]).toEqual([3, 1])
    expect(rowsOf(embeddings as Csr).map((row) => row.length > 0)).toEqual([true, false, false])
  })

  it('without iterations takes the mean of all samples', async () => {
    const groups = Groups.random(600, 5)
    const bags = await groups.aggregate(data.y)
    const options = { iterations: 0, embeddings: true }
    const { embeddings } = await eagle.assign(data.x, groups, bags, options)
    const { embeddings: want } = naive(data.x, groups, bags, 0, 0.1)
    rowsOf(embeddings as Csr).forEach((row, k) => {
      for (const [f, v] of row) expect(v).toBeCloseTo(want[k]?.[f] as number, 5)
    })
  })

  it('weighs groups by their counts', async () => {
    const x = matrix([[[0, 1]], [[1, 1]], [[0, 1]], [[1, 1]], [[0, 1]]], 2)
    const groups = Groups.from(new Int32Array([0, 0, 1, 2, 2]))
    const where = async (count: number) => {
      const bags = matrix([[[0, 1]], [[0, count]], [[0, 1]]], 1)
      const { embeddings } = await eagle.assign(x, groups, bags, { iterations: 0, embeddings: true })
      return rowsOf(embeddings as Csr)[0]?.map(([, v]) => v) ?? []
    }
    const [one = 0, rest = 0] = await where(1)
    expect(one / rest).toBeCloseTo(3 / 2, 5)
    const [three = 0, more = 0] = await where(3)
    expect(three / more).toBeCloseTo(5 / 2, 5)
  })

  it('finds most labels of random groups', async () => {
    const groups = Groups.random(600, 3)
    const bags = await groups.aggregate(data.y)
    const { y } = await eagle.assign(data.x, groups, bags)
    const right = rowsOf(y).reduce(
      (n, row, i) => n + row.filter(([k]) => data.truth[i]?.includes(k)).length,
      0,
    )
    expect(right / y.nnz).toBeGreaterThan(0.85)
    // Far more than the baseline, which gives each sample what its neighbours have.
    const all = await eagle.union(groups, bags)
    const { precision } = await evaluate(all, data.y, { k: [5] })
    expect(right / y.nnz).toBeGreaterThan(precision[5] as number)
  })

  it('makes embeddings of length 1', async () => {
    const groups = Groups.random(600, 5)
    const bags = await groups.aggregate(data.y)
    for (const options of [{}, { iterations: 0 }, { step: 3 }, { iterations: 500 }, { normalize: false }]) {
      const { embeddings } = await eagle.assign(data.x, groups, bags, { ...options, embeddings: true })
      expect([embeddings?.rows, embeddings?.cols]).toEqual([40, 140])
      for (const row of rowsOf(embeddings as Csr))
        expect(Math.sqrt(row.reduce((sum, [, v]) => sum + v * v, 0))).toBeCloseTo(1, 4)
    }
  })

  it('answers where all samples cancel out', async () => {
    const x = matrix([[[0, 1], [1, 2]], [[0, -1], [1, -2]]], 2) // biome-ignore format: a table
    const groups = Groups.from(new Int32Array([0, 0]))
    const { y, embeddings } = await eagle.assign(x, groups, matrix([[[0, 1]]], 1), { embeddings: true })
    expect(rowsOf(y).map((row) => row.length)).toEqual([1, 0])
    expect(rowsOf(y)[0]?.[0]?.[1]).toBeCloseTo(1, 5)
    expect(rowsOf(embeddings as Csr)[0]?.map(([, v]) => v)).toEqual([
      expect.closeTo(1 / Math.sqrt(5), 5),
      expect.closeTo(2 / Math.sqrt(5), 5),
    ])
  })

  it('answers where samples have no features', async () => {
    const { y, embeddings } = await eagle.assign(
      matrix([[], []], 2),
      Groups.from(new Int32Array([0, 0])),
      matrix([[[0, 1]]], 1),
      { embeddings: true },
    )
    expect(rowsOf(y).map((row) => row.length)).toEqual([1, 0])
    expect(embeddings?.nnz).toBe(0)
    // One with features is preferred.
    const { y: other } = await eagle.assign(
      matrix([[], [[0, 1]]], 2),
      Groups.from(new Int32Array([0, 0])),
      matrix([[[0, 1]]], 1),
    )
    expect(rowsOf(other).map((row) => row.length)).toEqual([0, 1])
  })

  it('keeps a similarity of 0 or less as a label', async () => {
    // The second group has nothing of what the first one's label is like.
    const x = matrix([[[0, 1]], [[1, 1]], [[0, -1]]], 2)
    const groups = Groups.from(new Int32Array([0, 1, 2]))
    const bags = matrix([[[0, 9]], [[1, 1]], [[0, 1]]], 2)
    const { y } = await eagle.assign(x, groups, bags)
    expect(rowsOf(y)[2]).toEqual([[0, expect.closeTo(-1, 5)]])
    const zero = Groups.fromMemberships(matrix([[[0, 1]], [[1, 1]], []], 2))
    const { y: orthogonal } = await eagle.assign(matrix([[[0, 1]], [], []], 2), zero, toy.bags)
    expect(rowsOf(orthogonal).map((row) => row.length)).toEqual([1, 1, 0])
    expect(rowsOf(orthogonal)[1]?.[0]?.[1]).toBeGreaterThan(0)
  })

  it('leaves lengths of rows alone where it is told to', async () => {
    // Scaled, the first group's rows are as like the label as one another except for the second group's.
    const x = matrix([[[0, 10], [2, 10]], [[1, 1]], [[1, 1]]], 3) // biome-ignore format: a table
    const groups = Groups.from(new Int32Array([0, 0, 1]))
    const scaled = await eagle.assign(x, groups, toy.bags)
    expect(rowsOf(scaled.y).map((row) => row.length)).toEqual([0, 1, 1])
    const asIs = await eagle.assign(x, groups, toy.bags, { normalize: false })
    expect(rowsOf(asIs.y).map((row) => row.length)).toEqual([1, 0, 1])
  })

  it('takes a dense block', async () => {
    const empty = matrix([[], [], [], []], 1)
    const values = new Float32Array([1, 0, 0, 1, 1, 0, -1, 0])
    const x = Features.from(empty, Dense.from({ rows: 4, cols: 2, values }))
    const groups = Groups.from(new Int32Array([0, 0, 1, 1]))
    const { y, embeddings } = await eagle.assign(x, groups, toy.bags, { embeddings: true })
    expect(rowsOf(y).map((row) => row.length)).toEqual([1, 0, 1, 0])
    expect(embeddings?.cols).toBe(3)
  })

  it('takes nothing at all', async () => {
    const groups = Groups.from(new Int32Array())
    const { y, embeddings } = await eagle.assign(matrix([], 3), groups, matrix([], 2), { embeddings: true })
    expect([y.rows, y.cols, embeddings?.rows, embeddings?.cols]).toEqual([0, 2, 2, 3])
    const none = await eagle.assign(toy.x, toy.groups, matrix([[], []], 4))
    expect([none.y.rows, none.y.cols, none.y.nnz]).toEqual([6, 4, 0])
  })

  it('does not depend on the number of threads', async () => {
    const groups = Groups.random(600, 5)
    const bags = await groups.aggregate(data.y)
    const of = async (threads: number) => {
      const { y, embeddings } = await eagle.assign(data.x, groups, bags, { embeddings: true }, { threads })
      return [y.toArrays(), embeddings?.toArrays()]
    }
    expect(await of(1)).toEqual(await of(4))
  })

  it('goes to a file and back', async () => {
    const path = `${dir}/similar.npz`
    const { y } = await eagle.assign(toy.x, toy.groups, toy.bags)
    await writeNpz(path, y)
    expect((await readNpz(path)).toArrays()).toEqual(y.toArrays())
  })

  it('refuses what does not fit', async () => {
    const { x, groups, bags } = toy
    const few = matrix([[[0, 1]]], 1)
    await expectError(() => eagle.assign(few, groups, bags), 'SHAPE_MISMATCH', /x has 1 rows .* 6 samples/)
    await expectError(() => eagle.assign(x, groups, few), 'SHAPE_MISMATCH', /2 groups but bags has 1 rows/)
    const negative = matrix([[[0, 1]], [[0, -1]]], 1)
    await expectError(
      () => eagle.assign(x, groups, negative),
      'INVALID_ARGUMENT',
      /group 1 has label 0 -1 times/,
    )
    await expectError(
      () => eagle.assign({} as never, groups, bags),
      'INVALID_ARGUMENT',
      /a Csr or Features for x/,
    )
    await expectError(() => eagle.assign(x, {} as never, bags), 'INVALID_ARGUMENT', /Groups for groups/)
    await expectError(() => eagle.assign(x, groups.memberships as never, bags), 'INVALID_ARGUMENT', /Groups/)
    await expectError(() => eagle.assign(x, groups, [] as never), 'INVALID_ARGUMENT', /a Csr for bags/)
  })

  it('lets no NaN come in', async () => {
    const one = (value: number) => () => matrix([[[0, value]], [[0, 1]]], 1)
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) await expectError(one(value), 'NOT_FINITE')
  })

  it('refuses wrong options', async () => {
    const wrong = (options: object) => () => eagle.assign(toy.x, toy.groups, toy.bags, options)
    await expectError(wrong({ iteration: 2 }), 'UNKNOWN_OPTION', /did you mean iterations/)
    await expectError(wrong({ iterations: -1 }), 'INVALID_ARGUMENT', /from 0 .* for iterations/)
    await expectError(wrong({ step: 0 }), 'INVALID_ARGUMENT', /for step/)
    await expectError(wrong({ step: Number.NaN }), 'INVALID_ARGUMENT', /for step/)
    await expectError(wrong({ normalize: 1 }), 'INVALID_ARGUMENT', /for normalize/)
    await expectError(wrong({ embeddings: 'yes' }), 'INVALID_ARGUMENT', /true or false for embeddings/)
  })

  it('is ended by a signal', async () => {
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(eagle.assign(toy.x, toy.groups, toy.bags, {}, { signal })).rejects.toBe(signal.reason)
    const { x, y } = hardProblem()
    const groups = Groups.random(x.rows, 10)
    const bags = await groups.aggregate(y)
    for (const after of [0, 50, 200]) {
      const controller = new AbortController()
      const reason = new Error('enough')
      const running = eagle.assign(
        x,
        groups,
        bags,
        { iterations: 60_000 },
        { threads: 1, signal: controller.signal },
      )
      const failed = expect(running).rejects.toBe(reason)
      await sleep(after)
      controller.abort(reason)
      await failed
    }
  })

  it('tells of its progress', async () => {
    const seen: Progress[] = []
    const groups = Groups.random(600, 5)
    const bags = await groups.aggregate(data.y)
    await eagle.assign(data.x, groups, bags, {}, { onProgress: (progress) => seen.push({ ...progress }) })
    expect([...new Set(seen.map(({ stage }) => stage))]).toEqual(['forecast', 'assign'])
    const last = seen.at(-1) as Progress
    expect(last).toMatchObject({ rows: 600, labels: 40 })
    expect(last.done).toBe(last.total)
    for (let i = 2; i < seen.length; i++)
      expect(seen[i]?.done).toBeGreaterThanOrEqual(seen[i - 1]?.done as number)
  })
})

describe('eagle.union', () => {
  it('gives every sample all labels of its groups, with summed counts', async () => {
    const groups = Groups.fromMemberships(matrix([[[0, 1], [1, 1]], [[1, 1]], []], 2)) // biome-ignore format: a table
    const y = await eagle.union(groups, matrix([[[0, 2]], [[0, 1], [1, 3]]], 4)) // biome-ignore format: a table
    expect([y.rows, y.cols]).toEqual([3, 4])
    expect(rowsOf(y)).toEqual([[[0, 3], [1, 3]], [[0, 1], [1, 3]], []]) // biome-ignore format: a table
  })

  it('gives back the labels of groups of one', async () => {
    const groups = Groups.from(Int32Array.from({ length: 600 }, (_, i) => i))
    const y = await eagle.union(groups, await groups.aggregate(data.y), { threads: 1 })
    expect(y.toArrays()).toEqual(data.y.toArrays())
  })

  it('refuses what does not fit', async () => {
    const groups = Groups.from(new Int32Array([0, 0]))
    await expectError(
      () => eagle.union(groups, matrix([[], []], 1)),
      'SHAPE_MISMATCH',
      /1 groups but bags has 2/,
    )
    await expectError(() => eagle.union(groups, matrix([[[0, -2]]], 1)), 'INVALID_ARGUMENT', /-2 times/)
    await expectError(
      () => eagle.union({} as never, matrix([[]], 1)),
      'INVALID_ARGUMENT',
      /Groups for groups/,
    )
    await expectError(() => eagle.union(groups, undefined as never), 'INVALID_ARGUMENT', /a Csr for bags/)
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(eagle.union(groups, matrix([[]], 1), { signal })).rejects.toBe(signal.reason)
  })
})
