import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Csr, Dense, readNpy, readNpz, writeNpy, writeNpz, writeXmc, XLinear } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import { cli, cliPath, folder, hardProblem, problem, sleep, start } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)
const [x, y, m, p] = [place('X.npz'), place('Y.npz'), place('m.aquila'), place('P.npz')]

beforeAll(async () => {
  const data = problem()
  await writeNpz(x, data.x)
  await writeNpz(y, data.y)
  await writeXmc(place('train.txt.gz'), data.x, data.y)
  const big = hardProblem()
  await writeNpz(place('bigX.npz'), big.x)
  await writeNpz(place('bigY.npz'), big.y)
  const { code, stderr } = await cli('train', '--x', x, '--y', y, '--out', m, '--json')
  expect([code, stderr]).toEqual([0, ''])
})

async function json(...args: string[]) {
  const { code, stdout, stderr } = await cli(...args, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

describe('the whole way', () => {
  it('trains, predicts, evaluates, times and inspects', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `name ${i}`)
    writeFileSync(place('names.txt'), `${names.join('\n')}\n`)
    const more = [
      '--set',
      'tree.maxLeaf=8',
      '--set',
      'solver.bias=0.5',
      '--labels',
      place('names.txt'),
      '--threads',
      '2',
    ]
    const trained = await json(
      'train',
      '--x',
      x,
      '--y',
      y,
      '--out',
      place('w.aquila'),
      '--seed',
      '5',
      ...more,
    )
    expect(Object.keys(trained.seconds)).toEqual([
      'labelVectors',
      'tree',
      'overlap',
      'layers',
      'layout',
      'total',
    ])
    expect(trained).toMatchObject({ rows: 600, features: 140, labels: 40 })
    expect(trained.layers.at(-1)).toBe(40)
    for (const bytes of ['peakMemoryBytes', 'forecastBytes', 'modelBytes'])
      expect(trained[bytes]).toBeGreaterThan(1000)
    expect(readFileSync(place('w.aquila')).length).toBe(trained.modelBytes)

    const args = ['--model', place('w.aquila'), '--x', x]
    const predicted = await json(
      'predict',
      ...args,
      '--k',
      '5',
      '--beam',
      '10',
      '--threads',
      '2',
      '--repeat',
      '3',
      '--out',
      p,
    )
    expect(predicted.rows).toBe(600)
    expect(predicted.msPerRow).toBeGreaterThan(0)
    const scores = await readNpz(p)
    expect([scores.rows, scores.cols]).toEqual([600, 40])
    expect(scores.row(0).indices.length).toBeLessThanOrEqual(5)

    const report = await json('evaluate', '--pred', p, '--y', y, '--train-y', y, '--k', '1,3')
    expect(Object.keys(report.precision)).toEqual(['1', '3'])
    expect(report.precision[1]).toBeGreaterThan(0.95)
    expect(report.psp[1]).toBeGreaterThan(0)

    const timed = await json('bench', ...args, '--single', '--queries', '50')
    expect(timed).toMatchObject({ queries: 50, rounds: 3 })
    for (const name of ['median', 'p99', 'mean']) expect(timed.singleMs[name]).toBeGreaterThan(0)

    const info = await json('inspect', place('w.aquila'), '--verify', '--tree', place('tree.json'))
    expect(info).toMatchObject({ labels: 40, seed: 5, verified: true, labelNames: 40 })
    expect(info.params).toMatchObject({ 'tree.maxLeaf': 8, 'solver.bias': 0.5 })
    await json('train', '--x', x, '--y', y, '--out', place('again.aquila'), '--tree', place('tree.json'))
    const [a, b] = await Promise.all([XLinear.open(place('w.aquila')), XLinear.open(place('again.aquila'))])
    expect(b.tree().toJson()).toBe(a.tree().toJson())
  })

  it('reads text files', async () => {
    const trained = await json('train', '--xmc', place('train.txt.gz'), '--out', place('t.aquila'))
    expect(trained.rows).toBe(600)
    expect(readFileSync(place('t.aquila'))).toEqual(readFileSync(m))
  })

  it('takes a dense block, beside sparse rows and alone', async () => {
    const d = place('dense.npy')
    const values = Float32Array.from({ length: 600 * 3 }, (_, i) => Math.cos(i))
    await writeNpy(d, Dense.from({ rows: 600, cols: 3, values }))
    for (const [rows, features] of [
      [['--x', x, '--dense', d], 143],
      [['--dense', d], 3],
      [['--xmc', place('train.txt.gz'), '--dense', d], 143],
    ] as const) {
      const model = place('dense.aquila')
      const labels = rows[0] === '--xmc' ? [] : ['--y', y]
      expect(await json('train', ...rows, ...labels, '--out', model)).toMatchObject({ features, labels: 40 })
      expect(await json('predict', '--model', model, ...rows, '--out', p)).toMatchObject({ rows: 600 })
      expect(await json('evaluate', '--pred', p, '--y', y)).toMatchObject({ rows: 600 })
      expect(
        (await json('bench', '--model', model, ...rows, '--queries', '5')).singleMs.mean,
      ).toBeGreaterThan(0)
      expect(await json('inspect', model)).toMatchObject({ features, denseFeatures: 3 })
    }
    expect((await cli('inspect', place('dense.aquila'))).stdout).toMatch(/^features +143, the last 3 dense/m)
    const missing = await cli('predict', '--model', place('dense.aquila'), '--x', x)
    expect(missing).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/140 sparse and 0 dense columns/),
    })
    await writeNpy(d, Dense.from({ rows: 599, cols: 3, values: values.subarray(3) }))
    const short = await cli('train', '--x', x, '--dense', d, '--y', y, '--out', place('no.aquila'))
    expect(short).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/600 rows but the dense block 599/),
    })
    const none = await cli('train', '--y', y, '--out', place('no.aquila'))
    expect(none).toMatchObject({ code: 1, stderr: expect.stringMatching(/--x, --xmc or --dense/) })
  })

  it('refuses dense blocks that do not fit, in every verb that takes one', async () => {
    const [model, good, bad] = [place('block.aquila'), place('block.npy'), place('bad.npy')]
    const values = Float32Array.from({ length: 600 * 3 }, (_, i) => Math.sin(i))
    await writeNpy(good, Dense.from({ rows: 600, cols: 3, values }))
    await json('train', '--x', x, '--dense', good, '--y', y, '--out', model)
    const nan = readFileSync(good)
    nan.writeFloatLE(Number.NaN, nan.length - 4)
    const flat = Buffer.from(readFileSync(good).toString('latin1').replace('(600, 3)', '(1800,) '), 'latin1')
    const text = Buffer.from(readFileSync(good).toString('latin1').replace('<f4', '<U1'), 'latin1')
    await writeNpy(bad, Dense.from({ rows: 600, cols: 2, values: values.subarray(600) }))
    const narrow = readFileSync(bad)
    const predict = ['predict', '--model', model, '--out', place('no.npz')]
    const bench = ['bench', '--model', model, '--queries', '5']
    const train = ['train', '--y', y, '--out', place('no.aquila')]
    for (const [name, block, verbs, reason] of [
      ['NaN', nan, [train, predict, bench], /NaN/],
      ['one axis', flat, [train, predict, bench], /the dense block 1800/],
      ['text', text, [train, predict, bench], /words where numbers belong/],
      ['too narrow', narrow, [predict, bench], /2 dense (columns|values)/],
      ['a sparse matrix', readFileSync(x), [train, predict, bench], /npy|NumPy/i],
    ] as const) {
      writeFileSync(bad, block)
      for (const verb of verbs) {
        const refused = await cli(...verb, '--x', x, '--dense', bad)
        expect(refused, `${name}, ${verb[0]}`).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(reason),
        })
      }
    }
    expect([existsSync(place('no.npz')), existsSync(place('no.aquila'))]).toEqual([false, false])
  })

  it('speaks to people too', async () => {
    const trained = await cli('train', '--x', x, '--y', y, '--out', place('h.aquila'))
    expect(trained.stderr.split('\n')[0]).toMatch(/^600 rows, 140 features, 40 labels; forecast: /)
    expect(trained.stderr).not.toContain('\r')
    expect(trained.stdout).toMatch(/^model .*h\.aquila/)
    const inspected = await cli('inspect', m)
    expect(inspected.stdout).toMatch(/^labels +40/m)
    const predicted = await cli('predict', '--model', m, '--x', x, '--out', p)
    expect(predicted.stdout).toMatch(/^ms per row/m)
    expect((await cli('evaluate', '--pred', p, '--y', y)).stdout).toMatch(/^P@1 +\d/m)
    expect((await cli('bench', '--model', m, '--x', x, '--queries', '5')).stdout).toMatch(/^median/m)
  })
})

describe('labels of groups', () => {
  const [g, b, s, e] = [place('G.npz'), place('B.npz'), place('S.npz'), place('E.npz')]

  /** Every pair of a row and a column, with its value. */
  function entries(m: Csr): [number, number, number][] {
    const { indptr, indices, values } = m.toArrays()
    return Array.from({ length: m.rows }, (_, i) => i).flatMap((i) =>
      [...indices.subarray(indptr[i], indptr[i + 1])].map((j, n): [number, number, number] => [
        i,
        j,
        values[(indptr[i] as number) + n] as number,
      ]),
    )
  }

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
    const made = await json(
      'group',
      '--x',
      x,
      '--rule',
      rule,
      '--seed',
      '3',
      '--out',
      g,
      '--y',
      y,
      '--bags',
      b,
    )
    const [groups, labels, bags] = [await readNpz(g), await readNpz(y), await readNpz(b)]
    expect(made).toMatchObject({ samples: 600, groups: groups.cols, out: g, bags: b, bagLabels: bags.nnz })
    expect(made.method).toBe('refine')
    expect(made.reasons[0]).toMatch(/samples and .* labels in the mean/)
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

    const model = place('groups.aquila')
    const set = ['--set', 'group.method=refine', '--set', 'group.rounds=0', '--set', 'tree.maxLeaf=10']
    expect(await json('train', ...args, ...set, '--out', model)).toMatchObject({ rows: 600, labels: 40 })
    const shown = await cli('refine', ...args, '--out', s)
    expect(shown.stdout).toMatch(
      /^refined +\d+ labels of 600 samples, in .*S\.npz\nlikeness +0\.\d+ .*\nseconds +\d/,
    )
  })

  it('takes a dense block', async () => {
    await writeNpy(
      place('D.npy'),
      Dense.from({ rows: 600, cols: 2, values: new Float32Array(1200).fill(0.5) }),
    )
    await json('group', '--x', x, '--rule', 'random:4', '--out', g, '--y', y, '--bags', b)
    const args = ['--x', x, '--dense', place('D.npy'), '--groups', g, '--bags', b, '--out', s]
    await json('assign', ...args, '--embeddings', e)
    expect((await readNpz(e)).cols).toBe(142)
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
    expect(assigned.stderr).toMatch(/^assign: done after [\d.]+ s\n$/)
  })
})

describe('help', () => {
  it('names every verb and every parameter', async () => {
    const { code, stdout } = await cli('--help')
    expect(code).toBe(0)
    for (const verb of [
      'train',
      'predict',
      'evaluate',
      'group',
      'embed',
      'assign',
      'refine',
      'inspect',
      'bench',
    ])
      expect(stdout).toContain(`  ${verb} `)
    const train = await cli('train', '--help')
    for (const name of ['tree.maxLeaf=100', 'solver.cp=1', 'group.method=refine', '--memory-limit'])
      expect(train.stdout).toContain(name)
    expect((await cli('--version')).stdout.trim()).toBe('0.1.0')
  })
})

describe('bad input', () => {
  const bad: [string, string[], RegExp][] = [
    ['an unknown verb', ['trian'], /unknown command 'trian'/],
    ['an unknown option', ['train', '--out', 'x', '--xx', '1'], /unknown option '--xx'/],
    ['a missing option', ['train', '--x', x, '--y', y], /--out/],
    ['no rows', ['train', '--y', y, '--out', place('no')], /--x, --xmc or --dense/],
    ['no labels', ['train', '--x', x, '--out', place('no')], /--y/],
    ['a missing file', ['train', '--x', place('none.npz'), '--y', y, '--out', place('no')], /none\.npz/],
    ['a foreign file', ['train', '--x', cliPath, '--y', y, '--out', place('no')], /main\.js/],
    [
      'an unknown parameter',
      ['train', '--x', x, '--y', y, '--out', place('no'), '--set', 'tree.maxLef=3'],
      /did you mean tree\.maxLeaf/,
    ],
    [
      'a wrong value',
      ['train', '--x', x, '--y', y, '--out', place('no'), '--set', 'tree.maxLeaf=zero'],
      /an integer from 1 .* received "zero"/,
    ],
    ['a wrong pair', ['train', '--x', x, '--y', y, '--out', place('no'), '--set', 'tree'], /key=value/],
    ['a wrong number', ['train', '--x', x, '--y', y, '--out', place('no'), '--threads', 'two'], /integer/],
    ['wrong bytes', ['train', '--x', x, '--y', y, '--out', place('no'), '--memory-limit', '2X'], /bytes/],
    [
      'too little memory',
      ['train', '--x', x, '--y', y, '--out', place('no'), '--memory-limit', '1k'],
      /forecast/,
    ],
    ['a wrong shape', ['train', '--x', x, '--y', place('bigY.npz'), '--out', place('no')], /600/],
    ['a folder to write to', ['train', '--x', x, '--y', y, '--out', dir], /./],
    ['no model', ['predict', '--model', x, '--x', x], /X\.npz/],
    ['a wrong matrix', ['predict', '--model', m, '--x', place('bigX.npz')], /1000 columns but the model 140/],
    ['k of 0', ['predict', '--model', m, '--x', x, '--k', '0'], /integer/],
    ['predictions of another shape', ['evaluate', '--pred', x, '--y', y], /./],
    ['a wrong list', ['evaluate', '--pred', y, '--y', y, '--k', '1,a'], /integer/],
    ['a missing model', ['inspect', place('none')], /none/],
    [
      'a rule of no size',
      ['group', '--x', x, '--rule', 'random', '--out', place('no')],
      /random:SIZE or kmeans/,
    ],
    [
      'a rule of size 0',
      ['group', '--x', x, '--rule', 'kmeans:0', '--out', place('no')],
      /received kmeans:0/,
    ],
    ['an unknown rule', ['group', '--x', x, '--rule', 'alike:2', '--out', place('no')], /received alike:2/],
    ['groups without a rule', ['group', '--x', x, '--out', place('no')], /--rule/],
    ['groups of no rows', ['group', '--rule', 'random:2', '--out', place('no')], /--x/],
    [
      'labels without a place for bags',
      ['group', '--x', x, '--rule', 'random:2', '--out', place('no'), '--y', y],
      /--y and --bags together/,
    ],
    [
      'bags without labels',
      ['group', '--x', x, '--rule', 'random:2', '--out', place('no'), '--bags', place('no')],
      /--y and --bags together/,
    ],
    [
      'too much noise',
      ['group', '--x', x, '--rule', 'kmeans:2', '--out', place('no'), '--noise', '2'],
      /Expected a number from 0 to 1/,
    ],
    [
      'labels of other rows',
      [
        'group',
        '--x',
        x,
        '--rule',
        'random:2',
        '--out',
        place('no'),
        '--y',
        place('bigY.npz'),
        '--bags',
        place('no2'),
      ],
      /600 samples but y has/,
    ],
    [
      'an unknown merge',
      ['group', '--x', x, '--rule', 'random:2', '--out', place('no'), '--merge', 'foo'],
      /Allowed choices are list, set/,
    ],
    [
      'groups and bags in one file',
      ['group', '--x', x, '--rule', 'random:2', '--out', place('no'), '--y', y, '--bags', place('no')],
      /different files for --out and --bags/,
    ],
    [
      'groups for a missing folder',
      ['group', '--x', x, '--rule', 'random:2', '--out', join(place('no'), 'G.npz')],
      /its folder does not exist/,
    ],
    [
      'bags for a missing folder',
      [
        'group',
        '--x',
        x,
        '--rule',
        'random:2',
        '--out',
        place('no'),
        '--y',
        y,
        '--bags',
        join(place('none'), 'B'),
      ],
      /its folder does not exist/,
    ],
    [
      'groups without bags',
      ['train', '--x', x, '--groups', y, '--out', place('no')],
      /--groups and --bags together/,
    ],
    [
      'labels of rows and of groups',
      ['train', '--x', x, '--y', y, '--groups', y, '--bags', y, '--out', place('no')],
      /of rows or of groups, not both/,
    ],
    [
      'parameters of groups where there are none',
      ['train', '--x', x, '--y', y, '--out', place('no'), '--set', 'group.rounds=1'],
      /group.rounds/,
    ],
    [
      'a method that is not there',
      ['train', '--x', x, '--groups', y, '--bags', y, '--out', place('no'), '--set', 'group.method=best'],
      /for group\.method/,
    ],
    [
      'a fold alone',
      ['refine', '--x', x, '--groups', y, '--bags', y, '--out', place('no'), '--folds', '1'],
      /at least 2/,
    ],
    [
      'a threshold above 1',
      ['refine', '--x', x, '--groups', y, '--bags', y, '--out', place('no'), '--threshold', '2'],
      /for threshold/,
    ],
    ['no groups', ['assign', '--x', x, '--bags', y, '--out', place('no')], /--groups/],
    ['no bags', ['assign', '--x', x, '--groups', y, '--out', place('no')], /--bags/],
    ['samples that are not there', ['assign', '--groups', y, '--bags', y, '--out', place('no')], /--x/],
    [
      'groups of other samples',
      ['assign', '--x', place('bigX.npz'), '--groups', y, '--bags', y, '--out', place('no')],
      /x has 20000 rows but the groups 600 samples/,
    ],
    [
      'bags of other groups',
      ['assign', '--x', x, '--groups', y, '--bags', y, '--out', place('no')],
      /40 groups but bags has 600 rows/,
    ],
    [
      'fewer than no iterations',
      ['assign', '--x', x, '--groups', y, '--bags', y, '--out', place('no'), '--iterations', '-1'],
      /an integer of at least 0/,
    ],
    [
      'a step of nothing',
      ['assign', '--x', x, '--groups', y, '--bags', y, '--out', place('no'), '--step', '0'],
      /for step/,
    ],
    [
      'similarities for a missing folder',
      ['assign', '--x', x, '--groups', y, '--bags', y, '--out', join(place('no'), 'S.npz')],
      /its folder does not exist/,
    ],
  ]
  it.each(bad)('%s is one clear line', async (_, args, message) => {
    const { code, stdout, stderr } = await cli(...args)
    expect(code).toBe(1)
    expect(stdout).toBe('')
    const said = stderr.split('\n').filter((line) => !/^\d+ rows, /.test(line))
    expect(said.length).toBe(2)
    expect(said[0]).toMatch(/^aquila: /)
    expect(said[0]).toMatch(message)
    expect(existsSync(place('no'))).toBe(false)
  })

  it('shows the stack to those who ask', async () => {
    const { stderr } = await start([cliPath, 'inspect', '/none'], {
      env: { ...process.env, AQUILA_DEBUG: '1' },
    }).ended
    expect(stderr).toMatch(/\n {4}at /)
  })
})

describe('an interrupted training', () => {
  const slow = ['--x', place('bigX.npz'), '--y', place('bigY.npz'), '--threads', '1']
  // Enough passes to be still at work whenever the signal comes.
  const long = [
    ...slow,
    '--set',
    'solver.eps=0.000001',
    '--set',
    'solver.maxPasses=10000',
    '--set',
    'solver.cp=10000',
    '--set',
    'solver.cn=10000',
  ]

  it('leaves no file and ends with code 130', async () => {
    const { child, ended } = start([cliPath, 'train', ...long, '--out', place('int.aquila')])
    await sleep(1200)
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(code).toBe(130)
    expect(stderr).toMatch(/aquila: cancelled\n$/)
    expect(readdirSync(dir).filter((name) => name.includes('int.aquila'))).toEqual([])
  })

  it('that is killed leaves the old model whole', async () => {
    const path = place('kill.aquila')
    writeFileSync(path, readFileSync(m))
    for (const after of [300, 900]) {
      const { child, ended } = start([cliPath, 'train', ...long, '--out', path])
      await sleep(after)
      child.kill('SIGKILL')
      expect((await ended).signal).toBe('SIGKILL')
      await (await XLinear.open(path)).verify()
      expect(readFileSync(path)).toEqual(readFileSync(m))
    }
  })
})
