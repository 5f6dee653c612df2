// Commands whose output finds no place, or no reader.

import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, linkSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { LabelTree, XLinear } from 'aquila-xmc'
import { expect, it } from 'vitest'
import { json, workplace } from './cli-helpers.js'
import { cliPath, start } from './helpers.js'

const { dir, place, x, y, m } = workplace()

it('a result that nobody reads is no error', async () => {
  const { child, ended } = start([cliPath, 'inspect', m, '--json'])
  child.stdout.destroy()
  expect(await ended).toMatchObject({ code: 0, stderr: '' })
})

it('work goes on when nobody listens to how far it has come', async () => {
  const { child, ended } = start([cliPath, 'train', '--x', x, '--y', y, '--out', place('deaf.aquila')])
  child.stderr.destroy()
  expect((await ended).code).toBe(0)
  await (await XLinear.open(place('deaf.aquila'))).verify()
})

it.runIf(existsSync('/dev/full'))('a result that does not fit on the disk is one clear line', () => {
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [cliPath, 'inspect', m, '--json'], {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  closeSync(full)
  expect(status).toBe(1)
  expect(stderr).toMatch(/^aquila: the output cannot be written: ENOSPC.*\n$/)
})

it('a tree takes the place of an old file in one step', async () => {
  const [tree, old] = [place('tree.json'), place('old.json')]
  writeFileSync(tree, 'old')
  linkSync(tree, old)
  await json('inspect', m, '--tree', tree)
  expect(LabelTree.fromJson(readFileSync(tree, 'utf8')).labels).toBe(40)
  expect(readFileSync(old, 'utf8')).toBe('old')
  expect(readdirSync(dir).filter((name) => name.includes('tmp'))).toEqual([])
})
