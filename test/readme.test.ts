import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeNpz } from 'aquila-xmc'
import { expect, it } from 'vitest'
import { cli, folder, problem, root, start } from './helpers.js'

const dir = folder()
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The code blocks between two markers. */
function blocks(marker: string): string[] {
  const [, part = ''] = readme.split(new RegExp(`<!-- ${marker}:(?:begin|end) -->`))
  return [...part.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string)
}

it('runs the example as a user would, and prints what it says', async () => {
  const [code = '', output = ''] = blocks('example')
  expect(code.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(20)
  mkdirSync(join(dir, 'node_modules'))
  symlinkSync(root, join(dir, 'node_modules/aquila-xmc'), 'junction')
  writeFileSync(join(dir, 'example.mjs'), code)
  const ended = await start([join(dir, 'example.mjs')], { cwd: dir }).ended
  expect(ended).toMatchObject({ code: 0, stderr: '', stdout: output })
})

it('runs the commands', async () => {
  const [text = ''] = blocks('cli')
  const [train, test] = [problem(), problem({ rows: 100, seed: 2 })]
  await writeNpz(join(dir, 'X.npz'), train.x)
  await writeNpz(join(dir, 'Y.npz'), train.y)
  await writeNpz(join(dir, 'Xt.npz'), test.x)
  await writeNpz(join(dir, 'Yt.npz'), test.y)
  const commands = text.trim().split('\n')
  expect(commands.length).toBe(5)
  for (const command of commands) {
    const [program, ...args] = command.split(' ')
    expect(program).toBe('aquila')
    const placed = args.map((arg) => (/\.(npz|aquila)$/.test(arg) ? join(dir, arg) : arg))
    expect([command, (await cli(...placed)).code]).toEqual([command, 0])
  }
})
