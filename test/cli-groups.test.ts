// Labels of groups on the command line.

import { existsSync, readFileSync } from 'node:fs'
import { type Csr, readNpy, readNpz } from 'aquila-xmc'
import { expect, it } from 'vitest'
import { json, workplace } from './cli-helpers.js'
import { cli, rowsOf } from './helpers.js'

const { place, x, y } = workplace()
const [g, b, s, e] = [place('G.npz'), place('B.npz'), place('S.npz'), place('E.npz')]

/** Every pair of a row and a column, with its value. */
const entries = (m: Csr) =>
  rowsOf(m).flatMap((row, i) => row.map(([j, v]): [number, number, number] => [i, j, v]))

/** Entries by their place, whatever their order. */
const table = (list: [number, number, number][]) =>
  Object.fromEntries(list.map(([i, j, v]) => [`${i} ${j}`, v]).sort())

/** How many samples of each group have each label: GᵀY. */
function product(groups: Csr, labels: Csr): [number, number, number][] {
  const counts = new Map<string, [number, number, number]>()
  for (const [i, j] of entries(groups))
    for (const k of labels.row(i).indices) {
      const entry = counts.get(`${j} ${k}`) ?? [j, k, 0]
      counts.set(`${j} ${k}`, [j, k, entry[2] + 1])
    }
  return [...counts.values()]
}

it.each(['random:8', 'kmeans:8'])('makes groups and their labels by %s', async (rule) => {
  const made = await json('group', '--x', x, '--rule', rule, '--seed', '3', '--out', g, '--y', y, '--bags', b)
  const [groups, labels, bags] = [await readNpz(g), await readNpz(y), await readNpz(b)]
  expect(made).toMatchObject({ samples: 600, groups: groups.cols, out: g, bags: b, bagLabels: bags.nnz })
  expect(made.method).toBe('refine')
  expect(made.reasons[0]).toMatch(/samples and .* labels on average/)
  expect(made.statistics).toMatchObject({ groups: groups.cols, samples: 600, labels: 40 })
  expect(made.statistics.labelsOfGroup).toBeCloseTo(bags.nnz / groups.cols, 9)
  expect(made.seconds.total).toBeGreaterThan(0)
  expect(made.peakMemoryBytes).toBeGreaterThan(1000)
  expect([groups.rows, groups.nnz, bags.rows, bags.cols]).toEqual([600, 600, groups.cols, 40])
  const sizes = new Array<number>(groups.cols).fill(0)
  for (const [, j] of entries(groups)) sizes[j] = (sizes[j] as number) + 1
  expect(Math.max(...sizes)).toBeLessThanOrEqual(8)
  expect(table(entries(bags))).toEqual(table(product(groups, labels)))

  const set = place('set.npz')
  const again = ['--seed', '3', '--out', g, '--y', y, '--bags', set, '--merge', 'set']
  await json('group', '--x', x, '--rule', rule, ...again, '--threads', '1')
  expect((await readNpz(g)).toArrays()).toEqual(groups.toArrays())
  const once = product(groups, labels).map(([j, k]): [number, number, number] => [j, k, 1])
  expect(table(entries(await readNpz(set)))).toEqual(table(once))
})

it('makes groups alone, and mixes clusters', async () => {
  const [one, other] = [place('alone.npz'), place('mixed.npz')]
  const alone = await json('group', '--x', x, '--rule', 'kmeans:10', '--out', one)
  expect(Object.keys(alone)).toEqual(['samples', 'groups', 'seconds', 'peakMemoryBytes', 'out'])
  await json('group', '--x', x, '--rule', 'kmeans:10', '--noise', '1', '--out', other)
  expect((await readNpz(other)).toArrays()).not.toEqual((await readNpz(one)).toArrays())
})

it('assigns them to samples', async () => {
  await json('group', '--x', x, '--rule', 'random:4', '--out', g, '--y', y, '--bags', b)
  const args = ['--x', x, '--groups', g, '--bags', b]
  const done = await json('assign', ...args, '--out', s, '--embeddings', e, '--threads', '2')
  const [similar, embeddings, groups, bags] = await Promise.all([s, e, g, b].map((path) => readNpz(path)))
  if (!similar || !embeddings || !groups || !bags) throw new Error('not read')
  expect(done).toMatchObject({
    rows: 600,
    labels: 40,
    groups: 150,
    assigned: similar.nnz,
    out: s,
    embeddings: e,
  })
  expect(done.seconds.total).toBeGreaterThan(0)
  expect(done.peakMemoryBytes).toBeGreaterThan(1000)
  expect([similar.rows, similar.cols, embeddings.rows, embeddings.cols]).toEqual([600, 40, 40, 140])
  // Each sample stands in one group here: each label of a group goes to exactly one sample.
  expect(similar.nnz).toBe(bags.nnz)
  expect(Object.keys(table(product(groups, similar)))).toEqual(Object.keys(table(entries(bags))))
  for (const [, , similarity] of entries(similar)) expect(Math.abs(similarity)).toBeLessThanOrEqual(1.0001)
  for (let k = 0; k < 40; k++) expect(Math.hypot(...embeddings.row(k).values)).toBeCloseTo(1, 4)

  for (const [verb, message] of [
    ['assign', /assignment is forecast/],
    ['embed', /embedding is forecast/],
    ['refine', /refinement is forecast/],
  ] as const) {
    const refused = await cli(verb, ...args, '--out', place('no.npz'), '--memory-limit', '1k')
    expect([refused.code, existsSync(place('no.npz'))]).toEqual([1, false])
    expect(refused.stderr).toMatch(message)
  }

  const plain = place('plain.npz')
  const means = await json('assign', ...args, '--iterations', '0', '--step', '0.5', '--out', plain)
  expect('embeddings' in means).toBe(false)
  expect((await readNpz(plain)).nnz).toBe(similar.nnz)
  expect((await readNpz(plain)).toArrays()).not.toEqual(similar.toArrays())

  const trained = await json('train', '--x', x, '--y', s, '--out', place('assigned.aquila'))
  expect(trained).toMatchObject({ rows: 600, labels: 40 })
})

it('embeds them, sparse and dense', async () => {
  await json('group', '--x', x, '--rule', 'random:4', '--out', g, '--y', y, '--bags', b)
  const args = ['--x', x, '--groups', g, '--bags', b, '--iterations', '5']
  const done = await json('embed', ...args, '--out', e)
  expect(done).toMatchObject({ labels: 40, features: 140, groups: 150, out: e })
  expect(done.seconds.total).toBeGreaterThan(0)
  const sparse = await readNpz(e)
  await json('assign', ...args, '--out', s, '--embeddings', place('same.npz'))
  expect(sparse.toArrays()).toEqual((await readNpz(place('same.npz'))).toArrays())
  await json('embed', ...args, '--out', place('E.npy'))
  const dense = (await readNpy(place('E.npy'))).toArray()
  await json('embed', ...args, '--out', place('E.npy.gz'))
  expect((await readNpy(place('E.npy.gz'))).toArray()).toEqual(dense)
  for (const [k, f, v] of entries(sparse)) expect(dense[k * 140 + f]).toBe(v)
  expect(dense.filter((v) => v !== 0).length).toBe(sparse.nnz)
  const shown = await cli('embed', ...args, '--out', e)
  expect(shown.stdout).toMatch(/^embedded +40 labels in 140 features, in .*E\.npz\nseconds +\d/)
})

it('refines them, and learns from them at once', async () => {
  await json('group', '--x', x, '--rule', 'random:4', '--out', g, '--y', y, '--bags', b)
  const args = ['--x', x, '--groups', g, '--bags', b]
  const done = await json('refine', ...args, '--seed', '1', '--threads', '2', '--out', s)
  const refined = await readNpz(s)
  expect(done).toMatchObject({ rows: 600, labels: 40, groups: 150, refined: refined.nnz, out: s })
  expect(done.seconds.total).toBeGreaterThan(0)
  expect(done.likeness).toBeLessThan(0.1)
  for (const [, , confidence] of entries(refined)) expect(confidence > 0 && confidence <= 1).toBe(true)
  const fast = await json(
    'refine',
    ...args,
    '--rounds',
    '0',
    '--folds',
    '2',
    '--threshold',
    '0.6',
    '--out',
    s,
  )
  expect(fast.threshold).toBeLessThanOrEqual(0.6 + 1e-6)

  // In two steps as at once.
  const [w, once, twice] = [place('W.npz'), place('once.aquila'), place('twice.aquila')]
  const taught = await json('refine', ...args, '--out', s, '--relevance', w)
  expect(taught.relevance).toBe(w)
  const costs = Object.entries(taught.solver).flatMap(([name, value]) => ['--set', `solver.${name}=${value}`])
  await json('train', '--x', x, '--y', s, '--relevance', w, ...costs, '--out', twice)
  await json('train', ...args, '--out', once)
  expect(readFileSync(twice).equals(readFileSync(once))).toBe(true)
  expect((await cli('refine', ...args, '--out', s, '--relevance', w)).stdout).toContain(
    `--y ${s} --relevance ${w} --set solver.relevance=leaves --set solver.cp=`,
  )

  const model = place('groups.aquila')
  const set = ['--set', 'group.method=refine', '--set', 'group.rounds=0', '--set', 'tree.maxLeaf=10']
  expect(await json('train', ...args, ...set, '--out', model)).toMatchObject({ rows: 600, labels: 40 })
  const shown = await cli('refine', ...args, '--out', s)
  expect(shown.stdout).toMatch(
    /^refined +\d+ labels of 600 samples, in .*S\.npz\nlikeness +0\.\d+ .*\nseconds +\d/,
  )
})

it('speaks to people', async () => {
  const made = await cli('group', '--x', x, '--rule', 'random:4', '--out', g, '--y', y, '--bags', b)
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(made.stdout).toMatch(
    /^groups +150 of 600 samples, in .*G\.npz\nbags +\d+ labels of groups, in .*B\.npz\nadvice: refine +Groups have 4\.0 samples.*\n/,
  )
  const assigned = await cli('assign', '--x', x, '--groups', g, '--bags', b, '--out', s)
  expect(assigned.code).toBe(0)
  expect(assigned.stdout).toMatch(/^assigned +\d+ labels to 600 samples, in .*S\.npz\nseconds +\d/)
  expect(assigned.stderr).toMatch(
    /^forecast: [\d.]+ [kM]B of memory at most for the engine, beside what Node\.js takes\nassign: done after [\d.]+ s\n$/,
  )
  for (const verb of ['embed', 'refine']) {
    const { stderr } = await cli(verb, '--x', x, '--groups', g, '--bags', b, '--out', s)
    expect(stderr).toMatch(
      /^forecast: [\d.]+ [kM]B of memory at most for the engine, beside what Node\.js takes\n/,
    )
    expect(stderr.match(/forecast/g)).toHaveLength(1)
  }
  const trained = await cli('train', '--x', x, '--groups', g, '--bags', b, '--out', place('told.aquila'))
  expect(trained.stderr).toMatch(
    /^600 rows, 140 features, 40 labels\nforecast: [\d.]+ [kM]B of memory at most for the engine, beside what Node\.js takes\n/,
  )
  expect(trained.stderr.match(/forecast/g)).toHaveLength(1)
})
