// What the library may be told the command line may be told, and it gives the same.

import { readFileSync, writeFileSync } from 'node:fs'
import {
  type Csr,
  Dense,
  eagle,
  Features,
  Groups,
  LabelTree,
  readNpz,
  type TrainOptions,
  writeNpy,
  writeNpz,
  XLinear,
} from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { json, workplace } from './cli-helpers.js'
import { cli, matrix, problem, rowsOf } from './helpers.js'

const { place, x, y, m } = workplace()
const data = problem()
const text = place('train.txt.gz')

/** The bytes of a model that the library makes of these options, and of one that the command line makes. */
async function models(options: TrainOptions, ...args: string[]): Promise<[Buffer, Buffer]> {
  const [one, other] = [place('library.aquila'), place('command.aquila')]
  await (await XLinear.train(data.x, data.y, options)).save(one)
  await json('train', '--x', x, '--y', y, ...args, '--out', other)
  return [readFileSync(one), readFileSync(other)]
}

/** Predictions as `predict --out` writes them. */
const same = async (path: string, scores: Csr) =>
  expect((await readNpz(path)).toArrays()).toEqual(scores.toArrays())

describe('train', () => {
  const some = (step: number) =>
    matrix(
      Array.from({ length: 600 }, (_, i): [number, number][] => [[(i * step) % 40, 1]]),
      40,
    )

  it.each([
    [
      'relevance',
      matrix(
        rowsOf(data.y).map((row) => row.map(([j]) => [j, 1 + (j % 7)])),
        40,
      ),
    ],
    ['negatives', some(7)],
    [
      'label-vectors',
      matrix(
        Array.from({ length: 40 }, (_, j) => [[j % 5, 1]]),
        5,
      ),
    ],
  ] as const)('takes %s', async (name, given) => {
    const path = place(`${name}.npz`)
    await writeNpz(path, given)
    const leaf = { maxLeaf: 8 }
    const set = ['--set', 'tree.maxLeaf=8']
    const options: TrainOptions =
      name === 'relevance'
        ? { tree: leaf, relevance: given, solver: { relevance: 'leaves' } }
        : { tree: leaf, [name === 'negatives' ? 'negatives' : 'labelVectors']: given }
    if (name === 'relevance') set.push('--set', 'solver.relevance=leaves')
    const [library, command] = await models(options, `--${name}`, path, ...set)
    expect(command.equals(library)).toBe(true)
    const [, without] = await models({}, ...set)
    expect(command.equals(without)).toBe(false)
  })

  it('takes metadata', async () => {
    const metadata = { source: ['a', 1, null], ä: true }
    writeFileSync(place('about.json'), JSON.stringify(metadata))
    const [library, command] = await models({ metadata }, '--metadata', place('about.json'))
    expect(command.equals(library)).toBe(true)
    expect((await json('inspect', place('command.aquila'))).metadata).toEqual(metadata)
  })

  it('takes a tree as a chain of matrices', async () => {
    const labelTree = LabelTree.fromJson(
      JSON.stringify({
        aquilaTree: 1,
        labels: 40,
        root: [0, 1].map((half) =>
          [0, 1, 2].map((third) =>
            Array.from({ length: 40 }, (_, j) => j).filter((j) => j % 6 === half * 3 + third),
          ),
        ),
      }),
    )
    const paths = labelTree.toChain().map((_, t) => place(`C${t}.npz`))
    await Promise.all(labelTree.toChain().map((part, t) => writeNpz(paths[t] as string, part)))
    expect(paths.length).toBe(3)
    const [library, command] = await models({ labelTree }, '--tree', ...paths)
    expect(command.equals(library)).toBe(true)
    const broken = await cli(
      'train',
      '--x',
      x,
      '--y',
      y,
      '--tree',
      ...paths.toReversed(),
      '--out',
      place('no'),
    )
    expect([broken.code, broken.stderr]).toEqual([
      1,
      expect.stringMatching(/C2\.npz, \S+C1\.npz, \S+C0\.npz: /),
    ])
  })
})

describe('predict', () => {
  const out = place('P.npz')

  it('takes allowed labels', async () => {
    const model = await XLinear.open(m)
    const allowed = Uint32Array.of(0, 2, 5, 7, 39)
    writeFileSync(place('allowed.txt'), '7\n5\r\n39\n 2\n0\n5\n')
    await json('predict', '--model', m, '--x', x, '--allowed', place('allowed.txt'), '--out', out)
    await same(out, (await model.predict(data.x, { allowed })).toCsr(40))
    const args = ['--model', m, '--x', x, '--allowed', place('allowed.txt'), '--queries', '5']
    expect((await json('bench', ...args)).queries).toBe(5)
  })

  it('takes chosen labels', async () => {
    const model = await XLinear.open(m)
    await json('predict', '--model', m, '--x', x, '--chosen', y, '--out', out)
    await same(out, (await model.predict(data.x, { chosen: data.y })).toCsr(40))
    expect((await readNpz(out)).nnz).toBe(data.y.nnz)
  })
})

describe('group', () => {
  const [g, b] = [place('G.npz'), place('B.npz')]

  it('takes the depth of clusters', async () => {
    const made = await json('group', '--x', x, '--rule', 'kmeans-depth:3', '--noise', '0.1', '--out', g)
    expect(made.groups).toBe(8)
    await same(g, (await Groups.kmeans(data.x, { depth: 3, noise: 0.1 })).memberships)
  })

  it('takes text with labels', async () => {
    const made = await json('group', '--xmc', text, '--rule', 'kmeans:8', '--out', g, '--bags', b)
    const groups = await Groups.kmeans(data.x, { size: 8 })
    await same(g, groups.memberships)
    await same(b, await groups.aggregate(data.y))
    expect(made.method).toBe('refine')
  })

  it('takes dense rows', async () => {
    const values = Float32Array.from({ length: 600 * 3 }, (_, i) => Math.cos(i))
    const block = Dense.from({ rows: 600, cols: 3, values })
    await writeNpy(place('D.npy'), block)
    for (const [args, rows] of [
      [[], undefined],
      [['--x', x], data.x],
    ] as const) {
      await json('group', ...args, '--dense', place('D.npy'), '--rule', 'kmeans:8', '--out', g)
      await same(g, (await Groups.kmeans(Features.from(rows, block), { size: 8 })).memberships)
    }
  })
})

it('assign and embed take rows as they are', async () => {
  const [g, b, s, e] = [place('G4.npz'), place('B4.npz'), place('S.npz'), place('E.npz')]
  await json('group', '--x', x, '--rule', 'random:4', '--out', g, '--y', y, '--bags', b)
  const [groups, bags] = [Groups.fromMemberships(await readNpz(g)), await readNpz(b)]
  const args = ['--x', x, '--groups', g, '--bags', b, '--no-normalize']
  await json('assign', ...args, '--out', s)
  const scaled = await eagle.assign(data.x, groups, bags)
  const plain = await eagle.assign(data.x, groups, bags, { normalize: false })
  await same(s, plain.y)
  expect(plain.y.toArrays()).not.toEqual(scaled.y.toArrays())
  await json('embed', ...args, '--out', e)
  await same(e, (await eagle.embed(data.x, groups, bags, { normalize: false })).embeddings)
})

it('evaluate prints every measure', async () => {
  const p = place('shown.npz')
  await json('predict', '--model', m, '--x', x, '--out', p)
  const args = ['evaluate', '--pred', p, '--y', y, '--train-y', y, '--k', '2']
  const report: Record<string, Record<string, number> | number | string> = await json(...args)
  const measured = Object.values(report).flatMap((at) => (typeof at === 'object' ? Object.values(at) : []))
  const { stdout } = await cli(...args)
  expect(measured.length).toBe(10)
  const percent = measured.map((at) => `${(100 * at).toFixed(2)} %`)
  expect([...stdout.matchAll(/@2 +(.*)$/gm)].map(([, shown]) => shown).sort()).toEqual(percent.sort())
})
