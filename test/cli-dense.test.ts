// Dense blocks on the command line.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Dense, readNpz, writeNpy } from 'aquila-xmc'
import { expect, it } from 'vitest'
import { json, workplace } from './cli-helpers.js'
import { cli } from './helpers.js'

const { place, x, y } = workplace()
const p = place('P.npz')

it('takes one beside sparse rows, and alone', async () => {
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
    expect((await json('bench', '--model', model, ...rows, '--queries', '5')).singleMs.mean).toBeGreaterThan(
      0,
    )
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

it('refuses those that do not fit, in every verb that takes one', async () => {
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

it('takes one beside labels of groups', async () => {
  const [g, b, s, e] = [place('G.npz'), place('B.npz'), place('S.npz'), place('E.npz')]
  await writeNpy(place('D.npy'), Dense.from({ rows: 600, cols: 2, values: new Float32Array(1200).fill(0.5) }))
  await json('group', '--x', x, '--rule', 'random:4', '--out', g, '--y', y, '--bags', b)
  const args = ['--x', x, '--dense', place('D.npy'), '--groups', g, '--bags', b, '--out', s]
  await json('assign', ...args, '--embeddings', e)
  expect((await readNpz(e)).cols).toBe(142)
})
