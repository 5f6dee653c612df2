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
import { expectError, folder, hardProblem, matrix, type Problem, problem, random, sleep } from './helpers.js'

type Row = [number, number][]

/** The rows of a matrix as `[column, value]`. */
function rowsOf(m: Csr): Row[] {
  const { indptr, indices, values } = m.toArrays()
  const entries = [...indices].map((j, n): [number, number] => [j, values[n] as number])
  return Array.from({ length: m.rows }, (_, i) => entries.slice(indptr[i], indptr[i + 1]))
}

/** The groups of each sample. */
const groupsOf = (groups: Groups) => rowsOf(groups.memberships).map((row) => row.map(([j]) => j))

/** The samples of each group. */
function membersOf(groups: Groups): number[][] {
  const members = Array.from({ length: groups.size }, (): number[] => [])
  groupsOf(groups).forEach((of, i) => {
    for (const j of of) members[j]?.push(i)
  })
  return members
}

const sizes = (groups: Groups) => membersOf(groups).map((members) => members.length)

/** Every sample stands in one group and no group is empty. */
function expectPartition(groups: Groups, samples: number): void {
  expect(groups.samples).toBe(samples)
  expect(new Set(groupsOf(groups).map((of) => of.length))).toEqual(new Set([1]))
  expect(Math.min(...sizes(groups))).toBeGreaterThan(0)
}

const dir = folder()
let data: Problem

beforeAll(() => {
  data = problem()
})

describe('Groups.from', () => {
  it('takes the group of each sample, -1 for none', () => {
    for (const Kind of [Int32Array, Uint32Array]) {
      const groups = Groups.from(new Kind([2, 0, 2]))
      expect([groups.samples, groups.size]).toEqual([3, 3])
      expect(groupsOf(groups)).toEqual([[2], [0], [2]])
    }
    const groups = Groups.from(new Int32Array([0, 0, 1, -1]))
    expect([groups.samples, groups.size, groups.memberships.nnz]).toEqual([4, 2, 3])
    expect(groupsOf(groups)).toEqual([[0], [0], [1], []])
    expect(new Set(groups.memberships.toArrays().values)).toEqual(new Set([1]))
  })

  it('takes no samples, and samples of no group', () => {
    const none = Groups.from(new Int32Array())
    expect([none.samples, none.size]).toEqual([0, 0])
    const without = Groups.from(new Int32Array([-1, -1]))
    expect([without.samples, without.size]).toEqual([2, 0])
  })

  it('refuses what is no group', async () => {
    await expectError(
      () => Groups.from(new Int32Array([0, -2])),
      'INDEX_OUT_OF_RANGE',
      /sample 1 has the group -2/,
    )
    for (const wrong of [[0, 1], new Float64Array([0]), undefined, null, 'a'])
      await expectError(
        () => Groups.from(wrong as never),
        'INVALID_ARGUMENT',
        /an Int32Array or Uint32Array for groupOfSample/,
      )
  })
})

describe('Groups.fromMemberships', () => {
  it('takes samples of several groups and of none', async () => {
    const groups = Groups.fromMemberships(matrix([[[0, 1]], [], [[0, 1], [2, 5]]], 3)) // biome-ignore format: a table
    expect([groups.samples, groups.size]).toEqual([3, 3])
    expect(membersOf(groups)).toEqual([[0, 2], [], [2]])
    const bags = await groups.aggregate(matrix([[[0, 1]], [[1, 1]], [[0, 1]]], 2))
    // A membership of 5 is one membership.
    expect(rowsOf(bags)).toEqual([[[0, 2]], [], [[0, 1]]])
  })

  it('does not take entries of 0', async () => {
    const groups = Groups.fromMemberships(matrix([[[0, 0]], [[0, 1]]], 1))
    expect(rowsOf(await groups.aggregate(matrix([[[0, 1]], [[0, 1]]], 1)))).toEqual([[[0, 1]]])
  })

  it('wants a Csr', async () => {
    for (const wrong of [{}, undefined, new Int32Array(2)])
      await expectError(
        () => Groups.fromMemberships(wrong as never),
        'INVALID_ARGUMENT',
        /a Csr for memberships/,
      )
  })
})

describe('Groups.random', () => {
  it('makes groups of the size, and one of what is left', () => {
    const groups = Groups.random(23, 5)
    expectPartition(groups, 23)
    expect(sizes(groups)).toEqual([5, 5, 5, 5, 3])
    expect(Groups.random(3, 10).size).toBe(1)
    expect([Groups.random(0, 3).samples, Groups.random(0, 3).size]).toEqual([0, 0])
  })

  it('makes the same groups of the same seed', () => {
    const of = (seed?: number) => groupsOf(Groups.random(100, 5, { seed }))
    expect(of(3)).toEqual(of(3))
    expect(of()).toEqual(of(0))
    expect(of(3)).not.toEqual(of(4))
    // In an order of chance, not the samples' own.
    expect(of(0)).not.toEqual(Array.from({ length: 100 }, (_, i) => [Math.floor(i / 5)]))
  })

  it('refuses wrong sizes', async () => {
    for (const size of [0, -1, 1.5, Number.NaN, '2', undefined])
      await expectError(() => Groups.random(5, size as never), 'INVALID_ARGUMENT', /from 1 .* for size/)
    for (const samples of [-1, 0.5, 2 ** 32, undefined])
      await expectError(() => Groups.random(samples as never, 2), 'INVALID_ARGUMENT', /for samples/)
    await expectError(() => Groups.random(5, 2, { seed: -1 }), 'INVALID_ARGUMENT', /for seed/)
    await expectError(() => Groups.random(5, 2, { sed: 1 } as never), 'UNKNOWN_OPTION', /sed: known are seed/)
    await expectError(() => Groups.random(5, 2, 1 as never), 'INVALID_ARGUMENT', /an object for options/)
  })
})

describe('Groups.kmeans', () => {
  /** Rows of two kinds, one after the other, that share no feature. */
  function twoKinds(rows: number): Csr {
    const next = random(3)
    return matrix(
      Array.from({ length: rows }, (_, i) =>
        [0, 1, 2].map((f): [number, number] => [(i % 2) * 3 + f, 0.5 + next()]),
      ),
      6,
    )
  }

  it('keeps to the size', async () => {
    for (const size of [1, 7, 64, 600, 5000]) {
      const groups = await Groups.kmeans(data.x, { size })
      expectPartition(groups, 600)
      // As few splits as reach the size, and no more groups than samples.
      expect(groups.size).toBe(Math.min(600, 2 ** Math.ceil(Math.log2(Math.max(1, 600 / size)))))
      const all = sizes(groups)
      expect(Math.max(...all)).toBeLessThanOrEqual(size)
      expect(Math.max(...all) - Math.min(...all)).toBeLessThanOrEqual(1)
    }
    expect(Math.max(...sizes(await Groups.kmeans(data.x)))).toBeLessThanOrEqual(8)
  })

  it('splits depth times, whatever the size', async () => {
    for (const depth of [1, 3, 5]) {
      const groups = await Groups.kmeans(data.x, { depth, size: 1 })
      expectPartition(groups, 600)
      expect(groups.size).toBe(2 ** depth)
    }
    // No more groups than samples.
    expect((await Groups.kmeans(twoKinds(4), { depth: 6 })).size).toBe(4)
  })

  it('finds two kinds of rows', async () => {
    for (const seed of [0, 1, 2]) {
      const [even, odd] = membersOf(await Groups.kmeans(twoKinds(40), { depth: 1 }, { seed }))
      expect(new Set(even?.map((i) => i % 2)).size).toBe(1)
      expect(new Set(odd?.map((i) => i % 2)).size).toBe(1)
    }
  })

  it('mixes with noise, and keeps sizes', async () => {
    const of = (noise: number, seed = 0) => Groups.kmeans(data.x, { size: 10, noise }, { seed })
    const [clusters, some, all] = [await of(0), await of(0.2), await of(1)]
    const moved = (groups: Groups) => {
      const [a, b] = [groupsOf(clusters), groupsOf(groups)]
      return a.filter((own, i) => own[0] !== b[i]?.[0]).length
    }
    expect(moved(some)).toBeGreaterThan(50)
    expect(moved(some)).toBeLessThanOrEqual(120)
    expect(moved(all)).toBeGreaterThan(500)
    for (const groups of [some, all]) {
      expectPartition(groups, 600)
      expect(sizes(groups)).toEqual(sizes(clusters))
    }
    // Nothing is left of two kinds of rows.
    const [first = []] = membersOf(await Groups.kmeans(twoKinds(400), { depth: 1, noise: 1 }))
    const share = first.filter((i) => i % 2 === 0).length / first.length
    expect(Math.abs(share - 0.5)).toBeLessThan(0.15)
  })

  it('depends on the seed and not on the number of threads', async () => {
    const of = (seed: number, threads: number) =>
      Groups.kmeans(data.x, { size: 10, noise: 0.3 }, { seed, threads }).then(groupsOf)
    expect(await of(5, 1)).toEqual(await of(5, 4))
    expect(await of(5, 1)).not.toEqual(await of(6, 1))
  })

  it('gives rows without features a group too', async () => {
    const rows = rowsOf(data.x).map((row, i) => (i % 3 === 0 ? [] : row))
    const groups = await Groups.kmeans(matrix(rows, data.x.cols), { depth: 4 })
    expectPartition(groups, 600)
    expect(groups.size).toBe(16)
    const all = sizes(groups)
    expect(Math.max(...all) - Math.min(...all)).toBeLessThanOrEqual(2)
    const none = await Groups.kmeans(matrix([[], [], [], [], []], 3), { size: 2 })
    expectPartition(none, 5)
    expect(Math.max(...sizes(none))).toBeLessThanOrEqual(2)
    const nobody = await Groups.kmeans(matrix([], 3))
    expect([nobody.samples, nobody.size]).toEqual([0, 0])
  })

  it('takes a dense block', async () => {
    const values = Float32Array.from({ length: 80 }, (_, n) => (n % 2 === Math.floor(n / 2) % 2 ? 1 : 0.1))
    const x = Features.from(matrix(Array.from({ length: 40 }, () => []), 1), Dense.from({ rows: 40, cols: 2, values })) // biome-ignore format: one line
    const groups = await Groups.kmeans(x, { depth: 1 })
    expectPartition(groups, 40)
    for (const members of membersOf(groups)) expect(new Set(members.map((i) => i % 2)).size).toBe(1)
  })

  it('refuses wrong options', async () => {
    const wrong = (options: object) => () => Groups.kmeans(data.x, options)
    await expectError(wrong({ sise: 2 }), 'UNKNOWN_OPTION', /did you mean size/)
    await expectError(wrong({ size: 0 }), 'INVALID_ARGUMENT', /from 1 .* for size/)
    await expectError(wrong({ depth: 31 }), 'INVALID_ARGUMENT', /from 0 to 30 for depth/)
    await expectError(wrong({ noise: 1.1 }), 'INVALID_ARGUMENT', /from 0 to 1 for noise/)
    await expectError(wrong({ noise: Number.NaN }), 'INVALID_ARGUMENT', /for noise/)
    await expectError(wrong({ size: '2' }), 'INVALID_ARGUMENT', /for size/)
    await expectError(() => Groups.kmeans([] as never), 'INVALID_ARGUMENT', /a Csr or Features for x/)
    await expectError(() => Groups.kmeans(data.x, {}, { thread: 1 } as never), 'UNKNOWN_OPTION', /thread/)
  })

  it('can be cancelled', async () => {
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(Groups.kmeans(data.x, {}, { signal })).rejects.toBe(signal.reason)
    const controller = new AbortController()
    const reason = new Error('enough')
    const { x } = hardProblem()
    const running = Groups.kmeans(x, { size: 1 }, { threads: 1, signal: controller.signal })
    const failed = expect(running).rejects.toBe(reason)
    await sleep(20)
    controller.abort(reason)
    await failed
  })
})

describe('aggregate', () => {
  const groups = () => Groups.from(new Int32Array([0, 0, 1, -1, 3]))
  // A value is no count, and 0 is no label.
  const y = matrix([[[0, 1], [2, 1]], [[0, 4]], [[1, 3], [2, 0]], [[2, 1]], []], 3) // biome-ignore format: a table

  it('counts the samples that have a label, or keeps that some has', async () => {
    const list = await groups().aggregate(y)
    expect([list.rows, list.cols]).toEqual([4, 3])
    expect(rowsOf(list)).toEqual([[[0, 2], [2, 1]], [[1, 1]], [], []]) // biome-ignore format: a table
    expect(rowsOf(await groups().aggregate(y, { merge: 'list' }))).toEqual(rowsOf(list))
    const set = await groups().aggregate(y, { merge: 'set' })
    expect(rowsOf(set)).toEqual([[[0, 1], [2, 1]], [[1, 1]], [], []]) // biome-ignore format: a table
  })

  it('counts every label of a problem once for each of its rows', async () => {
    const bags = await Groups.random(600, 7).aggregate(data.y, {}, { threads: 2 })
    const sum = bags.toArrays().values.reduce((a, b) => a + b, 0)
    expect(sum).toBe(data.y.nnz)
  })

  it('refuses what does not fit', async () => {
    const few = matrix([[[0, 1]]], 3)
    await expectError(() => groups().aggregate(few), 'SHAPE_MISMATCH', /5 samples but y has 1 rows/)
    await expectError(
      () => groups().aggregate(y, { merg: 'set' } as never),
      'UNKNOWN_OPTION',
      /did you mean merge/,
    )
    await expectError(() => groups().aggregate(y, { merge: 'bag' } as never), 'INVALID_ARGUMENT', /list, set/)
    await expectError(() => groups().aggregate({} as never), 'INVALID_ARGUMENT', /a Csr for y/)
  })
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
    // Scaled, the first group's rows are as like the label as one another but for the second group's.
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
    expect(new Set(seen.map(({ stage }) => stage))).toEqual(new Set(['assign']))
    const last = seen.at(-1) as Progress
    expect(last).toMatchObject({ rows: 600, labels: 40 })
    expect(last.done).toBe(last.total)
    for (let i = 1; i < seen.length; i++)
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

describe('close', () => {
  it('ends the use of groups, and may come twice', async () => {
    const groups = Groups.from(new Int32Array([0, 0]))
    const bags = matrix([[[0, 1]]], 1)
    groups.close()
    groups.close()
    await expectError(() => groups.samples, 'CLOSED')
    await expectError(() => groups.size, 'CLOSED')
    await expectError(() => groups.aggregate(matrix([[], []], 1)), 'CLOSED')
    await expectError(() => eagle.assign(matrix([[], []], 1), groups, bags), 'CLOSED')
    await expectError(() => eagle.union(groups, bags), 'CLOSED')
  })

  it('comes by itself at the end of a using block', async () => {
    let outside: Groups
    {
      using groups = Groups.from(new Int32Array([0, 0]))
      expect(groups.size).toBe(1)
      outside = groups
    }
    await expectError(() => outside.size, 'CLOSED')
  })

  it('leaves a running call what it needs', async () => {
    const groups = Groups.random(600, 5)
    const bags = await groups.aggregate(data.y)
    const running = eagle.assign(data.x, groups, bags)
    groups.close()
    bags.close()
    expect((await running).y.rows).toBe(600)
  })
})
