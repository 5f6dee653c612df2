// The guides' claims that can be checked are checked: code runs, links lead somewhere, tables are complete.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { trainParameters, writeNpz, XLinear } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import { specs } from '../dist/options.js'
import { folder, problem, root, start } from './helpers.js'

const dir = folder()
const guides = readdirSync(join(root, 'docs/guide')).map((name) => join('docs/guide', name))
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'examples/README.md',
  'docs/ARCHITECTURE.md',
  'bench/README.md',
  'docs/algorithms/eagle.md',
  'docs/algorithms/overlap.md',
  'docs/algorithms/refinement.md',
  ...guides,
]
const read = (page: string) => readFileSync(join(root, page), 'utf8')

/** The anchor that a heading gets on the usual hosts. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

describe.each(pages)('%s', (page) => {
  it('links to files and headings that exist', () => {
    const text = read(page)
    for (const [, target = ''] of text.matchAll(/\]\(([^)]+)\)/g)) {
      if (/^https?:/.test(target)) continue
      const [path = '', fragment] = target.split('#')
      const file = path === '' ? page : join(dirname(page), path)
      expect([target, existsSync(join(root, file))]).toEqual([target, true])
      if (fragment === undefined) continue
      const headings = [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchor(heading as string))
      expect(headings).toContain(fragment)
    }
  })
})

/** Code blocks of a text; a block of text right behind one is what it prints. */
const codeOf = (page: string, text: string) =>
  [...text.matchAll(/^```[jt]s\n([\s\S]*?)^```$(?:\n\n```text\n([\s\S]*?)^```$)?/gm)].map(
    ([, code, printed], i) => ({
      name: `${page}, block ${i + 1}`,
      code: code as string,
      printed,
    }),
  )

// The facade's examples hold no types: they run as they are, without the stars of their comments.
const facade = readdirSync(join(root, 'ts'))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join('ts', name))
const blocks = [
  ...guides.flatMap((page) => codeOf(page, read(page))),
  ...facade.flatMap((page) => codeOf(page, read(page).replaceAll(/^ *\* ?/gm, ''))),
]

describe('code blocks of the guides and of the facade', () => {
  beforeAll(async () => {
    const { x, y } = problem({ rows: 300 })
    const test = problem({ rows: 100, seed: 2 })
    const matrices = { x, y, xt: test.x, yt: test.y }
    for (const [name, matrix] of Object.entries(matrices)) await writeNpz(join(dir, `${name}.npz`), matrix)
    const labelNames = Array.from({ length: y.cols }, (_, i) => `label ${i}`)
    await (await XLinear.train(x, y, { labelNames, tree: { maxLeaf: 8 } })).save(join(dir, 'model.aquila'))
  })

  it.each(blocks)('$name runs', async ({ code, printed }) => {
    // Blocks may declare `top` or `labels` for themselves: what is given stands in a scope outside theirs.
    const prelude = `import * as aquila from ${JSON.stringify(join(root, 'dist/index.js'))}
      const given = { model: await aquila.XLinear.open('model.aquila') }
      for (const name of ['x', 'y', 'xt', 'yt']) given[name] = await aquila.readNpz(name + '.npz')
      given.row = given.xt.row(0)
      Object.assign(globalThis, aquila, given)
      await import('./block.mjs')`
    writeFileSync(join(dir, 'prelude.mjs'), prelude)
    writeFileSync(join(dir, 'block.mjs'), code.replace(/^import .* from 'aquila-xmc'$/m, ''))
    const ended = await start([join(dir, 'prelude.mjs')], { cwd: dir }).ended
    expect(ended).toMatchObject({ code: 0 })
    if (printed !== undefined) expect(ended.stdout).toBe(printed)
    // Where a comment says what is printed, that is printed.
    for (const [, text = ''] of code.matchAll(/console\.log\(.*\) ?\) \/\/ ([A-Z_]{4,})$/gm))
      expect(ended.stdout).toContain(text)
  })
})

describe('tables', () => {
  const rows = (page: string) =>
    new Map(
      [...read(page).matchAll(/^\| `([^`]+)` +\| (?:`([^`]+)`|none) +\|/gm)].map(([, name, value]) => [
        name as string,
        value,
      ]),
    )

  const compared = [
    ['predict', 'docs/guide/prediction.md'],
    ['metrics', 'docs/guide/metrics.md'],
    ['cluster', 'docs/guide/groups.md'],
    ['aggregate', 'docs/guide/groups.md'],
    ['assign', 'docs/guide/groups.md'],
    ['refine', 'docs/guide/groups.md'],
    ['groups', 'docs/guide/groups.md'],
  ] as const

  it('of training parameters name each with its default', () => {
    const told = rows('docs/guide/training.md')
    const real = Object.entries(trainParameters()).map(([name, value]) => [name, String(value)])
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(real))
  })

  it.each(compared)('of %s parameters name each with its default', (verb, page) => {
    const told = rows(page)
    for (const { name, default: value } of specs[verb])
      expect([name, told.has(name), told.get(name) ?? String(value)]).toEqual([name, true, String(value)])
  })

  it('are compared for the parameters of every call', () => {
    expect(Object.keys(specs).sort()).toEqual(['train', ...compared.map(([verb]) => verb)].sort())
  })

  it('of score forms name each', () => {
    const page = read('docs/guide/prediction.md')
    const forms = specs.predict.find(({ name }) => name === 'scores')?.choices ?? []
    expect(forms.length).toBeGreaterThan(5)
    // `l1-hinge` … `l4-hinge` stands for all between.
    for (const form of forms)
      if (!/l[23]-hinge/.test(form)) expect([form, page.includes(`\`${form}\``)]).toEqual([form, true])
  })
})
