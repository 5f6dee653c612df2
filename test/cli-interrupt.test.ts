// Trainings that do not come to their end.

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
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

it.skipIf(process.platform === 'win32')('end while they wait for their input when interrupted', async () => {
  execFileSync('mkfifo', [place('pipe.txt')])
  const { child, ended } = start([
    cliPath,
    'train',
    '--xmc',
    place('pipe.txt'),
    '--out',
    place('pipe.aquila'),
  ])
  const pipe = await open(place('pipe.txt'), 'w')
  await pipe.write('1000000 4 3\n0,2 1:0.5 3:2\n')
  await sleep(200)
  child.kill('SIGINT')
  const { code, stderr } = await ended
  await pipe.close()
  expect([code, stderr]).toEqual([130, 'aquila: cancelled\n'])
  expect(readdirSync(dir).filter((name) => name.includes('pipe.aquila') || name.endsWith('.tmp'))).toEqual([])
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

it('leave the old model whole when killed while they write the new one', async () => {
  const [path, about] = [place('late.aquila'), place('about.json')]
  // A large model of a quick training.
  writeFileSync(about, JSON.stringify('x'.repeat(1 << 25)))
  const args = ['--x', place('X.npz'), '--y', place('Y.npz'), '--metadata', about, '--out', path]
  let killed = false
  // Where the machine had other work to do, the new one may have been there before the kill.
  for (let tried = 0; tried < 5 && !killed; tried++) {
    writeFileSync(path, readFileSync(m))
    const { child, ended } = start([cliPath, 'train', ...args])
    const written = new RegExp(`^\\.aquila-[0-9a-f]{8}-${child.pid}-[0-9a-f]+-[0-9a-f]{8}-\\d+\\.tmp$`)
    const begun = () => readdirSync(dir).some((name) => written.test(name))
    while (child.exitCode === null && !begun()) await sleep(1)
    child.kill('SIGKILL')
    await ended
    killed = begun()
    await (await XLinear.open(path)).verify()
    if (killed) expect(readFileSync(path)).toEqual(readFileSync(m))
  }
  expect(killed).toBe(true)
  // Who writes there next takes away what they left, where the system tells that they are gone.
  const left = () => readdirSync(dir).filter((name) => /^\.aquila-.*\.tmp$/.test(name))
  if (process.platform === 'linux') {
    await (await XLinear.open(m)).save(path)
    expect(left()).toEqual([])
  }
})
