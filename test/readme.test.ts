import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeNpz } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import { cli, folder, problem, root, start } from './helpers.js'

const dir = folder()
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The code blocks between two markers. */
function blocks(marker: string): string[] {
  const [, part = ''] = readme.split(new RegExp(`<!-- ${marker}:(?:begin|end) -->`))
  return [...part.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string)
}

describe('the example', () => {
  const [code = '', output = ''] = blocks('example')
  const run = (text: string) => {
    writeFileSync(join(dir, 'example.mjs'), text)
    return start([join(dir, 'example.mjs')], { cwd: dir }).ended
  }
  beforeAll(() => {
    mkdirSync(join(dir, 'node_modules'))
    symlinkSync(root, join(dir, 'node_modules/aquila-xmc'), 'junction')
  })

  it('runs as a user would run it, and prints what it says', async () => {
    expect(code.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(20)
    expect(await run(code)).toMatchObject({ code: 0, stderr: '', stdout: output })
  })

  it.each([
    ['a repeated word', 'loaf yeast', 'loaf loaf', ''],
    ['words in another order', 'loaf yeast', 'yeast loaf', ''],
    ['an unknown word', 'loaf yeast', 'loaf butter', 'skipped: butter\n'],
    ['a text of unknown words alone', 'loaf yeast', 'butter jam', 'skipped: butter\nskipped: jam\n'],
    ['a repeated label', 'bread soup', 'soup bread soup', ''],
    ['an unknown label', 'bread soup', 'bread salad', 'skipped: salad\n'],
    ['a query in another order', 'yeast yeast goal', 'goal loaf yeast yeast', ''],
    ['a query with an unknown word', 'yeast yeast goal', 'goal tennis', 'skipped: tennis\n'],
  ])('still runs after an edit: %s', async (_, from, to, before) => {
    const edited = code.replace(`'${from}'`, `'${to}'`)
    expect(edited).not.toBe(code)
    const ended = await run(edited)
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^(?:skipped: [a-z]+\n)*(?:(?:bread|soup|football) \d\.\d\d\n){2}$/)
    expect(ended.stdout.startsWith(before === '' ? 'skipped' : before)).toBe(before !== '')
  })
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
