// What the tests of the command line share: files of a small problem, a model of it, and results as JSON.

import { join } from 'node:path'
import { writeNpz, writeXmc } from 'aquila-xmc'
import { beforeAll, expect } from 'vitest'
import { cli, folder, problem } from './helpers.js'

/** A folder with the small problem's matrices `x` and `y` and its model `m`, ready before the first test. */
export function workplace() {
  const dir = folder()
  const place = (name: string) => join(dir, name)
  const [x, y, m] = [place('X.npz'), place('Y.npz'), place('m.aquila')]
  beforeAll(async () => {
    const data = problem()
    await writeNpz(x, data.x)
    await writeNpz(y, data.y)
    await writeXmc(place('train.txt.gz'), data.x, data.y)
    await json('train', '--x', x, '--y', y, '--out', m)
  })
  return { dir, place, x, y, m }
}

/** What a command prints with `--json`; it must have ended well and quietly. */
export async function json(...args: string[]) {
  const { code, stdout, stderr } = await cli(...args, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
