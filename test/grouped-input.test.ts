// What every call on labels of groups does with unusual and with bad input.

import { join } from 'node:path'
import { type Csr, eagle, Groups, writeNpz, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { cli, expectError, folder, matrix, type Row, rowsOf } from './helpers.js'

interface Given {
  x: Csr
  groups: Groups
  bags: Csr
}

const trained = (method: 'union' | 'eagle' | 'refine') => (given: Given) =>
  XLinear.trainGroups(given.x, given.groups, given.bags, { group: { method, rounds: 0 } })

/** Every call that takes labels of groups; the first ones give labels of samples. */
const labelling = {
  assign: async ({ x, groups, bags }: Given) => (await eagle.assign(x, groups, bags)).y,
  refine: async ({ x, groups, bags }: Given) => (await eagle.refine(x, groups, bags)).y,
  union: ({ groups, bags }: Given) => eagle.union(groups, bags),
}
const others = {
  embed: async ({ x, groups, bags }: Given) => (await eagle.embed(x, groups, bags)).embeddings,
  advise: ({ x, groups, bags }: Given) => groups.advise(x, bags),
}
const training = {
  'trainGroups by union': trained('union'),
  'trainGroups by eagle': trained('eagle'),
  'trainGroups by refine': trained('refine'),
}

/** Twelve samples of a word each and, except for the last, one they share with others. */
function samples(): Row[] {
  return Array.from({ length: 12 }, (_, i) => [
    [i % 4, 1],
    [4 + (i % 3), 0.5],
  ])
}

const members = (lists: number[][], count = 12): Groups => {
  const rows: Row[] = Array.from({ length: count }, () => [])
  for (const [j, list] of lists.entries()) for (const i of list) rows[i]?.push([j, 1])
  return Groups.fromMemberships(matrix(rows, lists.length))
}
const one = (...labels: number[]): Row => labels.map((k) => [k, 1])
const pairs = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]] // biome-ignore format: a table
const usual = () => [one(0), one(1), one(0, 1), one(1), one(0), one(0, 1)]

const unusual: [string, () => Given][] = [
  [
    'empty groups',
    () => ({
      x: matrix(samples(), 7),
      groups: members([...pairs, [], []]),
      bags: matrix([...usual(), one(0), []], 2),
    }),
  ],
  [
    'samples of no group',
    () => ({
      x: matrix(samples(), 7),
      groups: members(pairs.slice(0, 4)),
      bags: matrix(usual().slice(0, 4), 2),
    }),
  ],
  [
    'groups without labels',
    () => ({
      x: matrix(samples(), 7),
      groups: members(pairs),
      bags: matrix([...usual().slice(0, 4), [], []], 2),
    }),
  ],
  [
    'labels of no group',
    () => ({ x: matrix(samples(), 7), groups: members(pairs), bags: matrix(usual(), 5) }),
  ],
  [
    'samples without features',
    () => ({
      x: matrix(
        samples().map((row, i) => (i % 3 ? row : [])),
        7,
      ),
      groups: members(pairs),
      bags: matrix(usual(), 2),
    }),
  ],
  [
    'groups of one',
    () => ({
      x: matrix(samples(), 7),
      groups: members(Array.from({ length: 12 }, (_, i) => [i])),
      bags: matrix([...usual(), ...usual()], 2),
    }),
  ],
  [
    'one group of everything',
    () => ({
      x: matrix(samples(), 7),
      groups: members([Array.from({ length: 12 }, (_, i) => i)]),
      bags: matrix([one(0, 1)], 2),
    }),
  ],
  [
    'samples of several groups',
    () => ({
      x: matrix(samples(), 7),
      groups: members([...pairs, [0, 5], [1, 5, 7]]),
      bags: matrix([...usual(), one(1), one(0)], 2),
    }),
  ],
]

describe.each(unusual)('%s', (_, make) => {
  it.each(Object.entries(labelling))('are well for %s', async (_, label) => {
    const given = make()
    const found = rowsOf(await label(given))
    const [of, labels] = [rowsOf(given.groups.memberships), rowsOf(given.bags)]
    expect(found.length).toBe(12)
    for (const [i, row] of found.entries()) {
      const allowed = new Set((of[i] as Row).flatMap(([j]) => (labels[j] as Row).map(([k]) => k)))
      for (const [k, v] of row) {
        expect(allowed, `sample ${i}`).toContain(k)
        expect(Number.isFinite(v)).toBe(true)
      }
    }
    // Every label of a group that has samples goes to one of them at least.
    for (const [j, row] of labels.entries()) {
      const mine = [...of.keys()].filter((i) => (of[i] as Row).some(([group]) => group === j))
      for (const [k] of row)
        expect(mine.length === 0 || mine.some((i) => (found[i] as Row).some(([l]) => l === k))).toBe(true)
    }
  })

  it('are well for embed and advise', async () => {
    const given = make()
    for (const row of rowsOf(await others.embed(given))) {
      const length = Math.sqrt(row.reduce((sum, [, v]) => sum + v * v, 0))
      expect(row.length === 0 || Math.abs(length - 1) < 1e-5).toBe(true)
    }
    const { method, statistics } = await others.advise(given)
    expect(['union', 'eagle', 'refine']).toContain(method)
    for (const value of Object.values(statistics)) expect(Number.isFinite(value)).toBe(true)
  })

  it.each(Object.entries(training))('are well for %s', async (_, train) => {
    const given = make()
    const model = await train(given)
    expect(model.info.labels).toBe(given.bags.cols)
    const { scores } = await model.predict(given.x, { k: 2 })
    expect(scores.every(Number.isFinite)).toBe(true)
  })
})

describe('what does not fit together', () => {
  const fitting = (): Given => ({
    x: matrix(samples(), 7),
    groups: members(pairs),
    bags: matrix(usual(), 2),
  })

  it.each(Object.entries({ ...labelling, ...others, ...training }))(
    'is refused by %s',
    async (name, call) => {
      const fewBags = { ...fitting(), bags: matrix(usual().slice(1), 2) }
      await expectError(() => call(fewBags), 'SHAPE_MISMATCH', /6 groups but bags has 5 rows/)
      const negative = { ...fitting(), bags: matrix([[[0, -1]], ...usual().slice(1)], 2) }
      await expectError(() => call(negative), 'INVALID_ARGUMENT', /group 0 has label 0 -1 times/)
      if (name === 'union') return
      const fewRows = { ...fitting(), x: matrix(samples().slice(1), 7) }
      await expectError(() => call(fewRows), 'SHAPE_MISMATCH', /x has 11 rows but the groups 12 samples/)
    },
  )

  it.each(Object.entries(training))('is nothing to learn for %s', async (_, train) => {
    const nothing = { ...fitting(), bags: matrix(Array(6).fill([]), 2) }
    await expectError(() => train(nothing), 'INVALID_ARGUMENT', /no sample stands in a group with labels/)
  })

  it('are pairs that stand twice, and numbers that are none', async () => {
    const twice: Row[] = [[[0, 1], [0, 1]], []] // biome-ignore format: a table
    await expectError(() => Groups.fromMemberships(matrix(twice, 1)), 'DUPLICATE_INDEX', /stands twice/)
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
      await expectError(() => Groups.fromMemberships(matrix([[[0, value]]], 1)), 'NOT_FINITE')
  })
})

describe('the command line', () => {
  const verbs = [['assign'], ['embed'], ['refine'], ['train', '--set', 'group.rounds=0']]

  it.each(verbs)('of %s takes the unusual and refuses what does not fit', async (...verb) => {
    const dir = folder()
    const path = (name: string) => join(dir, name)
    const run = async ({ x, groups, bags }: Given) => {
      await writeNpz(path('X.npz'), x)
      await writeNpz(path('G.npz'), groups.memberships)
      await writeNpz(path('B.npz'), bags)
      const given = ['--x', path('X.npz'), '--groups', path('G.npz'), '--bags', path('B.npz')]
      return cli(...verb, ...given, '--out', path(verb[0] === 'train' ? 'm.aquila' : 'out.npz'), '--json')
    }
    for (const [name, make] of unusual) {
      const { code, stderr } = await run(make())
      expect(`${name}: ${code} ${stderr}`).toBe(`${name}: 0 `)
    }
    const [, fitting] = unusual[3] as (typeof unusual)[0]
    const few = await run({ ...fitting(), bags: matrix(usual().slice(1), 2) })
    expect(few.code).toBe(1)
    expect(few.stderr).toMatch(/6 groups but bags has 5 rows/)
    const rows = await run({ ...fitting(), x: matrix(samples().slice(1), 7) })
    expect(rows.code).toBe(1)
    expect(rows.stderr).toMatch(/11 rows but the groups 12 samples/)
  })
})
