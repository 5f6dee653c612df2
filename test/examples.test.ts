import { copyFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { XLinear } from 'aquila-xmc'
import { beforeAll, describe, expect, it } from 'vitest'
import { folder, root, start } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)
const run = (name: string, ...args: string[]) => start([join(root, 'examples', name), ...args]).ended
const [train, test, labels, model] = ['train.txt.gz', 'test.txt.gz', 'labels.txt', 'm.aquila'].map(place) as [
  string,
  string,
  string,
  string,
]

beforeAll(async () => {
  expect(await run('write-data.mjs', dir, '4000')).toMatchObject({ code: 0, stderr: '' })
  const trained = await run('train-from-files.mjs', train, model, labels)
  expect([trained.code, trained.stderr]).toEqual([0, ''])
  expect(trained.stdout).toMatch(/^4000 rows, \d+ features, 2560 labels\nforecast: /)
  expect(trained.stdout).toMatch(/s {2}layers\n/)
})

it('demo shows its tables, plain where there is no terminal, and the same whatever the threads', async () => {
  const demo = (threads: string) =>
    run('demo.mjs', '--rows', '3000', '--threads', threads, '--out', place(`demo${threads}`))
  const [one, two] = [await demo('1'), await demo('2')]
  expect([one.code, one.stderr]).toEqual([0, ''])
  expect(one.stdout).not.toContain('\x1b')
  expect(one.stdout).not.toContain('\r')
  const rates = (text: string, name: string) =>
    [...(new RegExp(`^ *${name} {2}.*$`, 'm').exec(text)?.[0] ?? '').matchAll(/[\d.]+(?= %)/g)].map(Number)
  const ours = rates(one.stdout, 'Aquila')
  expect(ours.length).toBe(3)
  expect(ours[0]).toBeGreaterThan(10 * (rates(one.stdout, 'the most frequent labels')[0] as number))
  expect(one.stdout).toMatch(/found +\+? +\d\.\d\d +\w+ \/ /)
  const learned = (text: string) => /3 {2}Quality[\s\S]*(?=5 {2}Speed)/.exec(text)?.[0]
  expect(learned(two.stdout)).toBe(learned(one.stdout))
  const model = (threads: string) => readFileSync(place(`demo${threads}/catalogue.aquila`))
  expect(model('2').equals(model('1'))).toBe(true)
})

it('evaluate prints a table, with propensities where the training file is given', async () => {
  const { code, stdout } = await run('evaluate.mjs', model, test, train)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^400 rows, 0 of them/)
  expect(Number(/^precision +([\d.]+)/m.exec(stdout)?.[1])).toBeGreaterThan(40)
  expect(stdout).toMatch(/^psp +\d/m)
})

describe('short examples', () => {
  const printed = async (name: string) => {
    const { code, stdout, stderr } = await run(name)
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }
  const rates = (text: string) =>
    Object.fromEntries(
      [...text.matchAll(/^(\w+) +P@1 +([\d.]+) %$/gm)].map(([, name, rate]) => [name, Number(rate)]),
    ) as Record<string, number>

  it('groups: refinement comes between the union and the oracle', async () => {
    const text = await printed('groups.mjs')
    expect(text).toMatch(/^advice: refine$/m)
    const { union = 0, eagle = 0, refine = 0, oracle = 0 } = rates(text)
    expect(union).toBeGreaterThan(50)
    expect(eagle).toBeGreaterThan(union)
    expect(refine).toBeGreaterThan(eagle)
    expect(oracle).toBeGreaterThan(refine - 1)
  })

  it('overlap: both meanings of a label are told and found', async () => {
    const text = await printed('overlap.mjs')
    expect(text).toMatch(/^19 labels, 1 of them/)
    expect(text).toMatch(/^bass beside .*violin.*: .*groove/m)
    expect(text).toMatch(/^bass beside .*trout.*: .*bait/m)
    expect(text).toMatch(/^river bait: bass\nstage groove: bass$/m)
  })

  it('dense: both parts together are better than each', async () => {
    const text = await printed('dense.mjs')
    const { words = 0, embeddings = 0, both = 0 } = rates(text)
    expect(Math.min(words, embeddings)).toBeGreaterThan(50)
    expect(both).toBeGreaterThan(Math.max(words, embeddings))
    expect(text).toMatch(/^the first test record: .+; .+; .+$/m)
  })

  it('are all in the list of examples', () => {
    const told = readFileSync(join(root, 'examples/README.md'), 'utf8')
    for (const name of readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.mjs')))
      expect([name, told.includes(`](${name})`)]).toEqual([name, true])
  })
})

it('says what is wrong in one line', async () => {
  const { code, stderr } = await run('train-from-files.mjs', place('nowhere.txt'), model)
  expect(code).toBe(1)
  expect(stderr).toMatch(/^IO: .*nowhere\.txt/)
  for (const name of ['write-data.mjs', 'train-from-files.mjs', 'evaluate.mjs', 'service.mjs'])
    expect(await run(name)).toMatchObject({ code: 2 })
  expect(await run('demo.mjs', '--rows', 'many')).toMatchObject({ code: 2, stdout: '' })
})

describe('service', () => {
  let url = ''
  let service: ReturnType<typeof start>

  const ask = async (path: string, value?: unknown) => {
    const body = typeof value === 'string' ? value : JSON.stringify(value)
    const response = await fetch(url + path, value === undefined ? {} : { method: 'POST', body })
    // biome-ignore lint/suspicious/noExplicitAny: each route answers with its own shape, and the test compares it.
    return { status: response.status, body: (await response.json()) as any }
  }

  beforeAll(async () => {
    copyFileSync(model, place('live.aquila'))
    service = start([join(root, 'examples/service.mjs'), place('live.aquila'), '0'])
    let text = ''
    service.child.stdout.on('data', (chunk) => {
      text += chunk
    })
    while (!/listening on \d+\n/.test(text)) await delay(10)
    url = `http://127.0.0.1:${/\d+/.exec(text)?.[0]}`
  })

  it('answers, refuses, reloads under load and stops in order', async () => {
    const row = { indices: [1, 20], values: [1, 0.5] }
    const { body: one } = await ask('/predict', row)
    expect(one.length).toBe(5)
    expect(one[0].name).toMatch(/ \/ /)
    expect((await ask('/batch', { rows: [row, row] })).body).toEqual([one, one])
    expect((await ask('/model')).body.labels).toBe(2560)

    expect(await ask('/predict', { indices: [5, 5], values: [1, 1] })).toMatchObject({
      status: 400,
      body: { code: 'DUPLICATE_INDEX' },
    })
    expect(await ask('/predict', { indices: ['x'], values: [1] })).toMatchObject({ status: 400 })
    expect(await ask('/predict', '{')).toMatchObject({ status: 400, body: { code: 'PARSE' } })
    expect(await ask('/batch', { rows: Array(1001).fill(row) })).toMatchObject({ status: 400 })
    const [short, long] = [
      { indices: [1, 2], values: [1] },
      { indices: [3], values: [1, 1] },
    ]
    expect(await ask('/batch', { rows: [short, long] })).toMatchObject({
      status: 400,
      body: { code: 'SHAPE_MISMATCH' },
    })
    expect(await ask('/nowhere')).toMatchObject({ status: 404 })
    expect((await ask('/predict', ' '.repeat(2 ** 21)).catch(() => ({ status: 413 }))).status).toBe(413)

    // A sound model takes over while requests run.
    const other = place('other.aquila')
    await run('write-data.mjs', place('more'), '2000')
    expect((await run('train-from-files.mjs', join(place('more'), 'train.txt.gz'), other)).code).toBe(0)
    const next = await XLinear.open(other)
    await next.save(place('live.aquila'))
    const rows = Array(500).fill(row)
    const running = Array.from({ length: 3 }, () => ask('/batch', { rows }))
    expect(await ask('/reload', {})).toMatchObject({ status: 200 })
    for (const { status } of await Promise.all(running)) expect(status).toBe(200)
    expect((await ask('/model')).body.bytes).toBe(next.info.bytes)
    next.close()

    // A broken one does not.
    writeFileSync(place('broken'), 'no model')
    copyFileSync(place('broken'), place('live2.aquila'))
    renameSync(place('live2.aquila'), place('live.aquila'))
    expect(await ask('/reload', {})).toMatchObject({ status: 500, body: { code: 'BAD_MODEL' } })
    expect((await ask('/predict', row)).status).toBe(200)

    // Too many batches at once: some are turned away, none is lost.
    const flood = await Promise.all(Array.from({ length: 40 }, () => ask('/batch', { rows })))
    expect(new Set(flood.map(({ status }) => status)).has(200)).toBe(true)
    for (const { status } of flood) expect([200, 503]).toContain(status)

    service.child.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0, stderr: '' })
  })
})
