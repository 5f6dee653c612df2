import { readFileSync, writeFileSync } from 'node:fs'
import { readNpz, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
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

  it('speaks to people too', async () => {
    const trained = await cli('train', '--x', x, '--y', y, '--out', place('h.aquila'))
    expect(trained.stderr).toMatch(
      /^600 rows, 140 features, 40 labels\nforecast: [\d.]+ [kM]B of memory at most\n/,
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
    expect((await cli('--version')).stdout.trim()).toBe('0.1.0')
  })
})
