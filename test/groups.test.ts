// Groups of samples: how they are made, and their labels.

import { type Csr, Dense, eagle, Features, Groups } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  expectError,
  groupsOf,
  hardProblem,
  matrix,
  membersOf,
  type Problem,
  problem,
  random,
  rowsOf,
  sleep,
} from './helpers.js'

const sizes = (groups: Groups) => membersOf(groups).map((members) => members.length)

/** Every sample stands in one group and no group is empty. */
function expectPartition(groups: Groups, samples: number): void {
  expect(groups.samples).toBe(samples)
  expect(new Set(groupsOf(groups).map((of) => of.length))).toEqual(new Set([1]))
  expect(Math.min(...sizes(groups))).toBeGreaterThan(0)
}

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
      const groups = await Groups.kmeans(data.x, { depth })
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
    await expectError(wrong({ size: 4, depth: 2 }), 'INVALID_ARGUMENT', /either size or depth/)
    expect((await Groups.kmeans(data.x, { size: 300, depth: 0 })).size).toBe(2)
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
