// Trainings that do not come to their end.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { writeNpz, XLinear } from 'aquila-xmc'
import { beforeAll, expect, it } from 'vitest'
import { workplace } from './cli-helpers.js'
import { cliPath, ENDLESS, hardProblem, sleep, start } from './helpers.js'

const { dir, place, m } = workplace()
const [x, y] = [place('hardX.npz'), place('hardY.npz')]
const endless = Object.entries(ENDLESS).flatMap(([name, value]) => ['--set', `solver.${name}=${value}`])

beforeAll(async () => {
  const hard = hardProblem()
  await writeNpz(x, hard.x)
  await writeNpz(y, hard.y)
})

/** Starts a training that is still at work whenever a signal comes. */
const train = (out: string) =>
  start([cliPath, 'train', '--x', x, '--y', y, '--threads', '1', ...endless, '--out', out])

it('leave no file and end with code 130 when interrupted', async () => {
  const { child, ended } = train(place('int.aquila'))
  await sleep(1200)
  child.kill('SIGINT')
  const { code, stderr } = await ended
  expect(code).toBe(130)
  expect(stderr).toMatch(/aquila: cancelled\n$/)
  expect(readdirSync(dir).filter((name) => name.includes('int.aquila'))).toEqual([])
})

it('leave the old model whole when killed', async () => {
  const path = place('kill.aquila')
  writeFileSync(path, readFileSync(m))
  for (const after of [300, 900]) {
    const { child, ended } = train(path)
    await sleep(after)
    child.kill('SIGKILL')
    expect((await ended).signal).toBe('SIGKILL')
    await (await XLinear.open(path)).verify()
    expect(readFileSync(path)).toEqual(readFileSync(m))
  }
})
