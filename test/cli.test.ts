import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readNpz, writeNpz, writeXmc, XLinear } from 'aquila-xmc'
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
    expect(Object.keys(trained.seconds)).toEqual(['labelVectors', 'tree', 'layers', 'layout', 'total'])
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

describe('help', () => {
  it('names every verb and every parameter', async () => {
    const { code, stdout } = await cli('--help')
    expect(code).toBe(0)
    for (const verb of ['train', 'predict', 'evaluate', 'inspect', 'bench'])
      expect(stdout).toContain(`  ${verb} `)
    const train = await cli('train', '--help')
    for (const name of ['tree.maxLeaf=100', 'solver.cp=1', '--memory-limit'])
      expect(train.stdout).toContain(name)
    expect((await cli('--version')).stdout.trim()).toBe('0.1.0')
  })
})

describe('bad input', () => {
  const bad: [string, string[], RegExp][] = [
    ['an unknown verb', ['trian'], /unknown command 'trian'/],
    ['an unknown option', ['train', '--out', 'x', '--xx', '1'], /unknown option '--xx'/],
    ['a missing option', ['train', '--x', x, '--y', y], /--out/],
    ['no rows', ['train', '--y', y, '--out', place('no')], /--x or --xmc/],
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
