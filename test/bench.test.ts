import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { logTicks, ticks } from '../bench/lib/chart.mjs'
import { against, bestOf, compare, geometricMean, tolerance } from '../bench/lib/compare.mjs'
import { crowd } from '../bench/lib/crowd.mjs'
import { curves } from '../bench/lib/curves.mjs'
import { generate, shape } from '../bench/lib/generator.mjs'
import { BEGIN, digits, END, fill, markdown, section, summary, times } from '../bench/lib/report.mjs'
import { panelsOf, scatter } from '../bench/lib/scatter.mjs'
import { rankScores, rankTable, score } from '../bench/lib/score.mjs'
import { expectWellFormed, folder, root, start } from './helpers.js'

/** Labels of rows as the arrays of a matrix. */
function labels(rows: number[][]) {
  const indptr = [0]
  for (const row of rows) indptr.push((indptr.at(-1) as number) + row.length)
  return { indptr, indices: rows.flat() }
}

interface Made {
  indptr: Uint32Array
  indices: Uint32Array
  values: Float32Array
  rows: number
  cols: number
}

/** Every row has entries, ascending and within the columns. */
function expectRows(...matrices: Made[]): void {
  for (const { indptr, indices, rows, cols } of matrices)
    for (let i = 0; i < rows; i++) {
      const row = [...indices.subarray(indptr[i], indptr[i + 1])]
      expect(row.length).toBeGreaterThan(0)
      expect(row.every((id, n) => id < cols && (n === 0 || id > (row[n - 1] as number)))).toBe(true)
    }
}

/** The first row is scaled to length 1. */
function expectLengthOne({ values, indptr }: Made): void {
  expect(Math.hypot(...values.subarray(0, indptr[1]))).toBeCloseTo(1, 5)
}

describe('the scorer', () => {
  it('agrees with cases counted by hand', () => {
    // Right at ranks 1 and 3; right at rank 2 of a list of two; no labels; all wrong.
    const truth = labels([[2, 4, 7], [5], [], [1]])
    const { rows, unlabelled, precision, ndcg } = score(truth, [
      [4, 0, 2, 9, 8],
      [3, 5],
      [1, 2, 3],
      [9, 8, 7],
    ])
    expect([rows, unlabelled]).toEqual([4, 1])
    expect(precision[1]).toBeCloseTo(25)
    expect(precision[3]).toBeCloseTo((100 * (2 / 3 + 1 / 3)) / 4)
    expect(precision[5]).toBeCloseTo((100 * (2 / 5 + 1 / 5)) / 4)
    const second = 1 / Math.log2(3)
    expect(ndcg[1]).toBeCloseTo(25)
    expect(ndcg[3]).toBeCloseTo((100 * (1.5 / (1 + second + 0.5) + second)) / 4)
    expect(ndcg[5]).toBeCloseTo(ndcg[3])
  })

  it('takes entries of 0 for no labels', () => {
    expect(score({ ...labels([[1, 2]]), values: [0, 1] }, [[1]]).precision[1]).toBe(0)
    expect(score({ ...labels([[1, 2]]), values: [0, 1] }, [[2]]).ndcg[5]).toBe(100)
  })

  it('refuses answers that are none', () => {
    expect(() => score(labels([[1]]), [])).toThrow('1 rows but received 0')
    expect(() => score(labels([[1]]), [[1, 1, 1]])).toThrow('twice')
    expect(() => rankTable([1, 2, 3], 2)).toThrow('rows of 2')
  })

  it('ranks scores, ties by label, and tables', () => {
    const scored = { indptr: [0, 3, 3, 5], indices: [1, 5, 9, 2, 4], values: [0.5, 0.9, 0.5, 0.1, 0.1] }
    expect(rankScores(scored)).toEqual([[5, 1, 9], [], [2, 4]])
    expect(rankTable([3, 1, -1, -1, -1, -1, 2, 0, 1], 3)).toEqual([[3, 1], [], [2, 0, 1]])
  })
})

const round = (seconds: number, p: [number, number, number], more = {}) => ({
  trainSeconds: seconds,
  batchMsPerRow: seconds / 100,
  singleMedianMs: seconds / 10,
  singleP99Ms: seconds,
  modelBytes: 1e6,
  trainPeakBytes: 1e8,
  precision: { 1: p[0], 3: p[1], 5: p[2] },
  ndcg: { 1: p[0], 3: p[1], 5: p[2] },
  ...more,
})

describe('the comparison', () => {
  const ours = bestOf([round(2, [60, 40, 30]), round(1, [60, 40, 30])])

  it('compares fewer instructions of ours with all of the peer, and leaves out what was not measured', () => {
    const lesser = bestOf([round(1, [60, 40, 30], { batchMsPerRowAvx2: 0.02, singleMedianMsScalar: 0.4 })])
    const { ratios } = compare(lesser, bestOf([round(4, [60, 40, 30])]), 5000)
    expect(ratios).toMatchObject({ batchMsPerRow: 4, batchMsPerRowAvx2: 2, singleMedianMsScalar: 1 })
    expect(ratios).toMatchObject({ batchMsPerRowScalar: null, singleMedianMsAvx2: null })
  })

  it('takes the least of each measure and the mean quality', () => {
    const best = bestOf([
      round(2, [60, 40, 30], { modelBytes: 5 }),
      round(1, [61, 41, 31], { singleP99Ms: undefined }),
    ])
    expect(best).toMatchObject({ trainSeconds: 1, singleP99Ms: 2, modelBytes: 5 })
    expect(best.precision).toEqual({ 1: 60.5, 3: 40.5, 5: 30.5 })
    expect(bestOf([round(1, [1, 1, 1], { batchMsPerRow: null })]).batchMsPerRow).toBeNull()
  })

  it('gives ratios where our answers are as good', () => {
    const { worse, ratios } = compare(ours, bestOf([round(8, [60.2, 40, 29])]), 5000)
    expect(worse).toEqual([])
    expect(ratios).toMatchObject({ trainSeconds: 8, modelBytes: 1 })
  })

  it('gives none where they are worse at any rank', () => {
    expect([tolerance(4999), tolerance(5000)]).toEqual([0.4, 0.2])
    const better = bestOf([round(8, [50, 40.3, 30])])
    expect(compare(ours, better, 4999).ratios).not.toBeNull()
    const { worse, ratios } = compare(ours, better, 5000)
    expect(ratios).toBeNull()
    expect(worse).toEqual([{ k: 3, points: expect.closeTo(0.3) }])
  })

  it('takes the first of ours whose answers are as good', () => {
    const own = [60, 61].map((p, i) => ({ name: `${i}`, best: bestOf([round(i + 1, [p, 40, 30])]) }))
    const by = (p: number) => against(own, bestOf([round(8, [p, 40, 30])]), 5000)
    expect(by(60)).toMatchObject({ by: '0', ratios: { trainSeconds: 8 } })
    expect(by(61)).toMatchObject({ by: '1', ratios: { trainSeconds: 4 } })
    expect(by(62)).toMatchObject({ by: '0', ratios: null, worse: [{ k: 1, points: expect.closeTo(2) }] })
  })

  it('averages ratios geometrically', () => {
    expect(geometricMean([2, 8])).toBeCloseTo(4)
    expect(geometricMean([])).toBeNull()
  })
})

const own = [
  { name: 'aquila', status: 'measured', best: bestOf([round(1, [60, 40, 30])]) },
  { name: 'aquila-2', status: 'measured', best: bestOf([round(2, [60.5, 40, 30])]) },
]
const peer = (name: string, seconds: number, p: [number, number, number]) => {
  const best = bestOf([round(seconds, p)])
  return { name, status: 'measured', best, against: against(own, best, 6000) }
}
const results = {
  format: 1,
  date: '2030-01-02',
  command: 'npm run bench -- --features DIR',
  commit: { hash: '0123456789abcdef', dirty: true },
  machine: { cpu: 'A & B <C>', cores: 2, memoryBytes: 2 ** 34, system: 'linux', busiest: 0 },
  versions: {
    aquila: '0.1.0',
    simd: 'avx2',
    node: '20.0.0',
    rust: 'rustc 1.90.0 (abc)',
    python: '3.11',
    pecos: '1',
  },
  options: { rounds: 2, threads: 2, k: 10, beam: 10 },
  own: own.map(({ name }) => ({ name, note: `${name}'s` })),
  peers: [
    { name: 'pecos', note: 'one' },
    { name: 'omikuji', note: 'two' },
    { name: 'gone', note: 'three' },
  ],
  sets: ['a', 'b<&"'].map((name, i) => ({
    name,
    rows: 10_000,
    testRows: 6000,
    features: 5,
    labels: 6,
    systems: [
      ...own,
      peer('pecos', 4 ** (i + 1), [60, 40, 30]),
      peer('omikuji', 6, i ? [60.5, 40, 30] : [61, 40, 30]),
      { name: 'gone', status: 'not installed' },
    ],
  })),
}

describe('the texts', () => {
  it('show figures, ratios and refusals', () => {
    const text = markdown(results, 'x.svg').replaceAll(/ +/g, ' ')
    expect(text).toContain('at commit 0123456789 with uncommitted changes; A & B <C>, 2 cores, 16 GB')
    expect(text).toContain('| pecos, a | 4.00× | 4.00× | – | – | 4.00× | – | – | 1.00× | 1.00× |')
    expect(text).toContain('| **pecos, geometric mean of all sets** | 8.00× |')
    expect(text).toContain(
      '| omikuji, a | worse answers: no ratio (P@1 −1.00) | – | – | – | – | – | – | – | – |',
    )
    expect(text).toContain('| omikuji, b<&" (aquila-2) | 3.00× |')
    expect(text).toContain('| **omikuji, geometric mean of 1 of 2 sets** | 3.00× |')
    expect(text).toContain('| gone (not installed) | – |')
    expect(text).toContain("\n- aquila-2: aquila-2's\n")
    expect(text).not.toContain('other work')
    const busy = { ...results, machine: { ...results.machine, busiest: 0.5 } }
    expect(section(busy)).toContain('up to 50 %')
    for (const line of text.split('\n').filter((line: string) => line.startsWith('| gone')))
      expect(line.split('|').length).toBe(17)
  })

  it('are in the form that the formatter keeps', () => {
    for (const content of [section(results, 'x.svg'), summary(results, 'x.svg')]) {
      const text = fill(`# A\n\n${BEGIN}\n${END}\n`, content)
      const biome = join(root, 'node_modules/@biomejs/biome/bin/biome')
      const options = { cwd: root, input: text, encoding: 'utf8' } as const
      const { stdout } = spawnSync(process.execPath, [biome, 'format', '--stdin-file-path=A.md'], options)
      expect(stdout).toBe(text)
    }
  })

  it('are summed up for the README', () => {
    const text = summary(results, 'x.svg').replaceAll(/ +/g, ' ')
    expect(text).toContain('geometric mean over a, b<&". A set counts where')
    expect(text).toContain('| pecos, all | 8.00× |')
    expect(text).toContain('| omikuji, 1 of 2 | 3.00× |')
    expect(text).toContain('![Training time against P@1](x.svg)')
    expect(text).toContain('at commit 0123456789 with uncommitted changes')
    expect(summary({ ...results, sets: [] })).toMatch(/^No peer was measured\./)
  })

  it('write numbers with the digits that count', () => {
    expect([0, 0.001234, 1.5, 12.34, 123.4, 1234.5, null].map(digits)).toEqual([
      '0',
      '0.00123',
      '1.50',
      '12.3',
      '123',
      '1235',
      '–',
    ])
    expect([0.5, 9.876, 12.34, 123.4, null].map(times)).toEqual(['0.50×', '9.88×', '12.3×', '123×', '–'])
  })

  it('fill a README between its markers, again and again', () => {
    const readme = `# A\n\n${BEGIN}\nold\n${END}\n\nrest\n`
    const once = fill(readme, 'new\n')
    expect(once).toBe(`# A\n\n${BEGIN}\nnew\n${END}\n\nrest\n`)
    expect(fill(once, 'new')).toBe(once)
    expect(fill(readme, '$& $1')).toContain('$& $1')
    for (const wrong of ['', BEGIN, END, `${END}${BEGIN}`, readme + readme])
      expect(() => fill(wrong, 'new')).toThrow('Expected the markers')
  })
})

describe('the picture', () => {
  const order = [...own, ...results.peers].map(({ name }) => name)
  const panels = panelsOf(results)

  it('is well-formed and names every mark', () => {
    const svg = scatter(panels, order)
    expectWellFormed(svg)
    expect(svg).toContain('>b&lt;&amp;&quot;</text>')
    for (const name of ['aquila', 'aquila-2', 'pecos', 'omikuji'])
      expect(svg.split(`>${name}</text>`).length).toBe(3)
    expect(svg).not.toMatch(/NaN|Infinity|undefined|>gone</)
    expect(svg).toContain('prefers-color-scheme: dark')
  })

  it('bears one system, equal systems, none', () => {
    const same = { system: 'aquila', seconds: 1, quality: 50 }
    for (const points of [[same], [same, { ...same, system: 'pecos' }], []]) {
      const svg = scatter([{ name: 'x', points }], order)
      expectWellFormed(svg)
      expect(svg).not.toMatch(/NaN|Infinity|undefined/)
    }
    expectWellFormed(scatter([], order))
  })

  it('has round numbers on its axes', () => {
    expect(logTicks(0.03, 3)).toEqual([0.05, 0.1, 0.2, 0.5, 1, 2])
    expect(logTicks(0.003, 300)).toEqual([0.01, 0.1, 1, 10, 100])
    expect(ticks(92.4, 93.9)).toEqual([92.5, 93, 93.5])
    expect(ticks(0.1, 0.7)).toEqual([0.2, 0.4, 0.6])
  })
})

describe('curves', () => {
  const points = [1, 2, 4].map((x) => ({ x, y: x * x, sd: x / 4 }))
  const lines = [
    { name: 'a<', points },
    { name: 'b', points: points.slice(0, 1) },
  ]

  it('are well-formed on every kind of axis, with a legend', () => {
    for (const kind of ['plain', 'log', 'even']) {
      const panel = { name: '&', x: { label: 'x', kind }, y: { label: 'y' }, lines }
      const svg = curves([panel, panel], ['a<', 'b'], 'what & why')
      expectWellFormed(svg)
      expect(svg).not.toMatch(/NaN|Infinity|undefined/)
      expect(svg.split('>a&lt;</text>').length).toBe(2)
      expect(svg).toContain('a&lt;, 4: 16 ± 1')
    }
  })

  it('bear equal values, one point, none', () => {
    const flat = [3, 3].map((x) => ({ x, y: 0 }))
    for (const points of [flat, flat.slice(1), []]) {
      const panel = { name: 'x', x: { label: 'x' }, y: { label: 'y' }, lines: [{ name: 'a', points }] }
      const svg = curves([panel], ['a'], 't')
      expectWellFormed(svg)
      expect(svg).not.toMatch(/NaN|Infinity|undefined/)
    }
  })
})

describe('the crowd', () => {
  it('is the same for the same seed, in rows of length 1 with ascending ids', () => {
    const { x, y } = crowd({ samples: 200, labels: 50 })
    expect(crowd({ samples: 200, labels: 50 })).toEqual({ x, y })
    expect(crowd({ samples: 200, labels: 50, seed: 1 }).x.indices).not.toEqual(x.indices)
    expectRows(x, y)
    expectLengthOne(x)
  })
})

describe('the generator', () => {
  const small = generate(0.002, 3)

  it('makes the same set again, another one of another seed', () => {
    expect(generate(0.002, 3)).toEqual(small)
    expect(generate(0.002, 4).trn.y.indices).not.toEqual(small.trn.y.indices)
  })

  it('has the shape that it names', () => {
    const { rows, testRows, features, labels } = shape(0.002)
    expect(shape(1)).toEqual({ rows: 490_449, testRows: 20_000, features: 135_909, labels: 670_091 })
    const { x, y } = small.trn
    expect([x.rows, x.cols, y.rows, y.cols, small.tst.x.rows]).toEqual([
      rows,
      features,
      rows,
      labels,
      testRows,
    ])
    expectRows(x, y, small.tst.x, small.tst.y)
    expectLengthOne(x)
  })
})

describe('the command', () => {
  const dir = folder()
  const node = (...args: string[]) =>
    start(args.map((arg) => (arg.startsWith('bench/') ? join(root, arg) : arg))).ended

  it('generates, measures and fills a README without any peer', async () => {
    const made = await node('bench/generate.mjs', '--out', dir, '--name', 'tiny', '--scale', '0.002')
    expect([made.code, made.stderr]).toEqual([0, ''])
    const out = join(dir, 'results')
    const python = join(dir, 'no-python')
    const run = await node(
      ...['bench/run.mjs', '--features', dir, '--no-build', '--python', python, '--out', out],
      ...['--rounds', '1', '--queries', '20', '--peers', 'pecos'],
    )
    expect([run.code, run.stderr]).toEqual([0, ''])
    expect(run.stdout).toContain('pecos: not installed')
    const [json, md, svg] = readdirSync(out).sort()
    expect([json, md, svg].map((name) => name?.replace(/^\d{4}-\d\d-\d\d/, ''))).toEqual([
      '-peers.json',
      '-peers.md',
      '-peers.svg',
    ])
    const text = readFileSync(join(out, json as string), 'utf8')
    expect(text).not.toContain(dir)
    const { sets } = JSON.parse(text)
    expect(sets[0]).toMatchObject({ name: 'tiny', rows: 981, labels: 1340 })
    const [ours, two, pecos] = sets[0].systems
    expect(two.best.modelBytes).toBeGreaterThan(ours.best.modelBytes)
    expect(pecos.status).toBe('not installed')
    expect(ours.rounds.length).toBe(1)
    expect(ours.best.precision[1]).toBeGreaterThan(30)
    for (const name of ['trainSeconds', 'batchMsPerRow', 'singleMedianMs', 'modelBytes', 'trainPeakBytes'])
      expect(ours.best[name]).toBeGreaterThan(0)
    for (const name of ['batchMsPerRowScalar', 'singleMedianMsScalar'])
      expect(ours.best[name]).toBeGreaterThan(0)

    const readme = join(dir, 'README.md')
    writeFileSync(readme, `# T\n${BEGIN}\n${END}\n`)
    const filled = await node('bench/update-readme.mjs', join(out, json as string), readme)
    expect([filled.code, filled.stderr]).toEqual([0, ''])
    expect(readFileSync(readme, 'utf8')).toContain(`(results/${svg})`)
  })

  it('measures labels of groups, and goes on where it was', async () => {
    const out = join(dir, 'groups')
    const args = ['bench/groups.mjs', '--features', dir, '--out', out, '--sets', 'tiny']
    const rules = ['--rules', 'random:2,random:4,kmeans:8+0.5', '--methods', 'union,refine']
    const run = await node(...args, ...rules, '--seeds', '2')
    expect([run.code, run.stderr]).toEqual([0, ''])
    const names = readdirSync(out).sort()
    expect(names.map((name) => name.replace(/^\d{4}-\d\d-\d\d/, ''))).toEqual([
      '-groups-random.svg',
      '-groups.json',
      '-groups.md',
      '-groups.svg',
    ])
    const path = join(out, names[1] as string)
    const text = readFileSync(path, 'utf8')
    expect(text).not.toContain(dir)
    // Two seeds of the samples' own labels, and of three rules by two methods.
    const [{ runs }] = JSON.parse(text).sets
    expect(runs.length).toBe(14)
    const p1 = (rule: string, method: string) =>
      runs.find((one: { rule: string; method: string }) => one.rule === rule && one.method === method)
        .precision[0]
    expect(p1('none', 'oracle')).toBeGreaterThan(p1('random:4', 'union'))
    expect(p1('random:2', 'refine')).toBeGreaterThan(p1('random:4', 'union'))
    for (const svg of [names[0], names[3]]) expectWellFormed(readFileSync(join(out, svg as string), 'utf8'))
    expect(readFileSync(join(out, names[2] as string), 'utf8')).toMatch(/\| kmeans:8\+0\.5 \|/)

    const more = await node(
      ...args,
      '--rules',
      'random:2',
      '--methods',
      'eagle',
      '--seeds',
      '1',
      '--resume',
      path,
    )
    expect([more.code, more.stdout.split('\n').length]).toEqual([0, 3])
    expect(JSON.parse(readFileSync(path, 'utf8')).sets[0].runs.length).toBe(15)
    const other = await node(...args, '--merge', 'list', '--resume', path)
    expect([other.code, other.stderr]).toEqual([1, expect.stringMatching(/of --merge set/)])
  }, 60_000)

  it('measures assignment by size', async () => {
    const out = join(dir, 'scale')
    const sizes = ['--samples', '500,1000', '--sizes', '2,4', '--labels', '100']
    const run = await node('bench/scale.mjs', ...sizes, '--out', out)
    expect([run.code, run.stderr]).toEqual([0, ''])
    const [json, , svg] = readdirSync(out).sort()
    const { points } = JSON.parse(readFileSync(join(out, json as string), 'utf8'))
    expect(points.map(({ samples, size }: { samples: number; size: number }) => [samples, size])).toEqual([
      [500, 2],
      [500, 4],
      [1000, 2],
      [1000, 4],
    ])
    expectWellFormed(readFileSync(join(out, svg as string), 'utf8'))
  }, 60_000)

  it.each([
    [['bench/groups.mjs'], /--features/],
    [['bench/groups.mjs', '--features', dir, '--rules', 'random'], /received random/],
    [['bench/groups.mjs', '--features', dir, '--rules', 'random:2+0.5'], /received random:2\+0\.5/],
    [['bench/groups.mjs', '--features', dir, '--methods', 'best'], /methods of union, .* received best/],
    [['bench/groups.mjs', '--features', dir, '--resume', join(dir, 'no.json')], /no such file/],
    [['bench/simulation.mjs', '--rounds', '0'], /--rounds/],
    [['bench/scale.mjs', '--sizes', '0'], /--sizes/],
    [['bench/run.mjs'], /--features/],
    [['bench/run.mjs', '--features', join(dir, 'none')], /no such folder/],
    [['bench/run.mjs', '--features', root], /no set/],
    [['bench/run.mjs', '--features', dir, '--sets', 'other'], /sets of tiny but received other/],
    [['bench/run.mjs', '--features', dir, '--peers', 'other'], /pecos, .* but received other/],
    [['bench/run.mjs', '--features', dir, '--rounds', 'two'], /integer of at least 1 for --rounds/],
    [['bench/run.mjs', '--wrong'], /--wrong/],
    [['bench/generate.mjs'], /--out/],
    [['bench/generate.mjs', '--out', dir, '--scale', '0'], /--scale/],
    [['bench/throughput.mjs', '--rounds', '0'], /above 0/],
    [['bench/update-readme.mjs', join(dir, 'none.json')], /none\.json/],
  ] as [string[], RegExp][])('%j is one clear line', async (args, message) => {
    const { code, stderr } = await node(...args)
    expect(code).toBe(1)
    expect(stderr.trim().split('\n').length).toBe(1)
    expect(stderr).toMatch(message)
    expect(existsSync(join(dir, 'none.json'))).toBe(false)
  })
})
