import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { readNpz, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { fitting, progress } from '../dist/cli/common.js'
import { json, workplace } from './cli-helpers.js'
import { cli } from './helpers.js'

const { place, x, y, m } = workplace()
const p = place('P.npz')

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
    const weighed = ['evaluate', '--pred', p, '--y', y, '--train-y', y]
    const named = await json(...weighed, '--data-set', 'Amazon-670K')
    const set = await json(...weighed, '--set', 'propensity.a=0.6', '--set', 'propensity.b=2.6')
    expect(set).toEqual(named)
    expect(named.psp[1]).not.toBe(report.psp[1])

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

  it('reads texts that begin with a byte-order mark', async () => {
    const [names, words] = [40, 140].map((n) => Array.from({ length: n }, (_, i) => `n${i}`)) as string[][]
    const marked = (name: string, text: string) => writeFileSync(place(name), `\uFEFF${text}`)
    marked('labels.txt', names?.join('\r\n') ?? '')
    marked('words.txt', words?.join('\n') ?? '')
    marked('meta.json', '{ "a": 1 }')
    marked('marked.json', (await XLinear.open(m)).tree().toJson())
    marked('allowed.txt', '3\n0\n')
    const files = ['--labels', 'labels.txt', '--feature-names', 'words.txt', '--metadata', 'meta.json']
    const placed = files.map((word) => (word.startsWith('-') ? word : place(word)))
    const out = ['--out', place('b.aquila')]
    await json('train', '--x', x, '--y', y, ...out, ...placed, '--tree', place('marked.json'))
    const model = await XLinear.open(place('b.aquila'))
    expect([model.labelNames, model.featureName(0), model.info.metadata]).toEqual([names, 'n0', { a: 1 }])
    const asked = ['--model', m, '--x', x, '--allowed', place('allowed.txt')]
    expect((await json('predict', ...asked)).predictions.length).toBe(600)
  })

  it('speaks to people too', async () => {
    const trained = await cli('train', '--x', x, '--y', y, '--out', place('h.aquila'))
    expect(trained.stderr).toMatch(
      /^600 rows, 140 features, 40 labels\nforecast: [\d.]+ [kM]B of memory at most for the engine, beside what Node\.js takes\n/,
    )
    expect(trained.stdout).toMatch(
      /^peak memory +[\d.]+ [MG]B of the whole process, Node\.js included \(forecast for the engine: [\d.]+ [kM]B\)$/m,
    )
    expect(trained.stderr).not.toContain('\r')
    expect(trained.stdout).toMatch(/^model .*h\.aquila/)
    const inspected = await cli('inspect', m)
    expect(inspected.stdout).toMatch(/^labels +40/m)
    const predicted = await cli('predict', '--model', m, '--x', x, '--set', 'k=3', '--out', p)
    expect(predicted.stdout).toMatch(/^ms per row/m)
    expect((await readNpz(p)).row(0).indices.length).toBe(3)
    expect((await cli('evaluate', '--pred', p, '--y', y)).stdout).toMatch(/^P@1 +\d/m)
    const { stdout } = await cli('evaluate', '--pred', p, '--y', y, '--k', '3,1,3')
    expect(stdout.match(/^P@\d/gm)).toEqual(['P@3', 'P@1'])
    expect((await cli('bench', '--model', m, '--x', x, '--queries', '5')).stdout).toMatch(/^median/m)
  })
})

describe('predictions on standard output', () => {
  const predict = ['predict', '--model', m, '--x', x, '--k', '3']

  it('are a line of label:score pairs for each row, best first', async () => {
    const top = await (await XLinear.open(m)).predict(await readNpz(x), { k: 3 })
    const { code, stdout, stderr } = await cli(...predict)
    expect(code).toBe(0)
    expect(stderr).toMatch(/^rows +600\nms per row /)
    const rows = stdout.trimEnd().split('\n')
    expect(rows.length).toBe(600)
    rows.forEach((line, i) => {
      const pairs = line.split(' ').map((pair) => pair.split(':').map(Number))
      const { labels, scores } = top.row(i)
      expect(Uint32Array.from(pairs, ([label]) => label as number)).toEqual(labels)
      expect(Float32Array.from(pairs, ([, score]) => score as number)).toEqual(scores)
    })
    // So it is where the name says so, and no file is made of it.
    const named = await cli(...predict, '--out', '-')
    expect([named.code, named.stdout, existsSync('-')]).toEqual([0, stdout, false])

    const { predictions, rows: count } = await json(...predict)
    const pairs = predictions.map((row: number[][]) => row.map((pair) => pair.join(':')).join(' '))
    expect([count, pairs.join('\n')]).toEqual([600, stdout.trimEnd().replaceAll(/e-0*/g, 'e-')])
    expect((await json(...predict, '--out', '-')).predictions).toEqual(predictions)
  })

  it('have an empty line for a row without labels', async () => {
    const { code, stdout } = await cli(...predict, '--set', 'floor=2')
    expect([code, stdout]).toEqual([0, '\n'.repeat(600)])
    expect((await json(...predict, '--set', 'floor=2')).predictions).toEqual(new Array(600).fill([]))
  })

  it('are not on it beside a file', async () => {
    expect('predictions' in (await json(...predict, '--out', p))).toBe(false)
    expect((await cli(...predict, '--out', p)).stdout).toMatch(/^rows +600\nms per row .*\npredictions /)
  })
})

describe('progress', () => {
  it('is cut to the width of the terminal, for what wraps cannot be written over', () => {
    expect(fitting('0123456789', 6)).toBe('01234')
    for (const columns of [undefined, 0, 11, 200]) expect(fitting('0123456789', columns)).toBe('0123456789')
    const { isTTY, columns, write } = process.stderr
    let shown = ''
    try {
      Object.assign(process.stderr, {
        isTTY: true,
        columns: 20,
        write: (text: string) => {
          shown += text
          return true
        },
      })
      progress(false).show?.({ stage: 'layers', done: 1, total: 4, rows: 1, labels: 1, seconds: 1, eta: 7 })
    } finally {
      Object.assign(process.stderr, { isTTY, columns, write })
    }
    expect(shown).toBe('\r\x1b[Klayers       [#####')
  })
})

describe('--verify', () => {
  it('refuses a damaged model before it predicts', async () => {
    const bytes = readFileSync(m)
    // The weights come first: their place stands in the first entry of the table of sections.
    const at = Number(bytes.readBigUInt64LE(72)) + 100
    bytes[at] = (bytes[at] as number) ^ 0x55
    const damaged = place('damaged.aquila')
    writeFileSync(damaged, bytes)
    for (const verb of ['predict', 'bench']) {
      const refused = await cli(verb, '--model', damaged, '--x', x, '--verify')
      expect([refused.code, refused.stdout]).toEqual([1, ''])
      expect(refused.stderr).toMatch(/differs from its checksum/)
      // Nobody looks else: that is what it costs to open in no time.
      expect((await cli(verb, '--model', damaged, '--x', x)).code).toBe(0)
      expect((await cli(verb, '--model', m, '--x', x, '--verify')).code).toBe(0)
    }
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
    expect(await cli('help', 'train')).toEqual(train)
    expect((await cli('help')).stdout).toBe(stdout)
    // The defaults are the engine's.
    expect((await cli('predict', '--help')).stdout.match(/\(default: 10\)/g)).toHaveLength(2)
    for (const name of ['tree.maxLeaf=100', 'solver.cp=1', 'group.method=refine', '--memory-limit'])
      expect(train.stdout).toContain(name)
    expect((await cli('bench', '--help')).stdout).toMatch(
      /--single +time one query after another; so it is without/,
    )
    expect((await cli('--version')).stdout.trim()).toBe('0.1.0')
  })
})
