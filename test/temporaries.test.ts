// Temporary files go when the process ends in the middle of a write, and files that are replaced keep their rights.

import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Csr, writeNpz, XLinear } from 'aquila-xmc'
import { beforeAll, expect, it } from 'vitest'
import { cli, expectError, folder, problem, script } from './helpers.js'

const dir = folder()
const path = join(dir, 'large.aquila')
let model: XLinear

beforeAll(async () => {
  const { x, y } = problem()
  // Large enough that its saving takes a while.
  model = await XLinear.train(x, y, { metadata: 'x'.repeat(1 << 25) })
  await model.save(path)
})

it('leaves none behind when the process ends during a write', async () => {
  const before = readFileSync(path)
  for (const after of [0, 1, 2, 4, 8, 16]) {
    const { code, stderr } = await script(`
      import { setTimeout as sleep } from 'node:timers/promises'
      const model = await aquila.XLinear.open(${JSON.stringify(path)})
      void model.save(${JSON.stringify(path)})
      void model.save(${JSON.stringify(join(dir, 'other.aquila'))})
      await sleep(${after})
      process.exit(3)`)
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' })
    expect(readdirSync(dir).filter((name) => name.endsWith('.tmp'))).toEqual([])
    expect(readFileSync(path).equals(before)).toBe(true)
  }
})

it('leaves none behind when a worker ends during a write', async () => {
  const { code, stderr, stdout } = await script(`
    import { Worker } from 'node:worker_threads'
    import { setTimeout as sleep } from 'node:timers/promises'
    import { readdirSync } from 'node:fs'
    const code = \`import(${JSON.stringify(join(process.cwd(), 'dist/index.js'))}).then(async ({ XLinear }) => {
      const model = await XLinear.open(${JSON.stringify(path)})
      void model.save(${JSON.stringify(path)})
      ;(await import('node:worker_threads')).parentPort.postMessage(0)
    })\`
    const worker = new Worker(code, { eval: true })
    await new Promise((resolve) => worker.once('message', resolve))
    await worker.terminate()
    const left = () => readdirSync(${JSON.stringify(dir)}).filter((name) => name.endsWith('.tmp'))
    for (let n = 0; n < 200 && left().length > 0; n++) await sleep(10)
    console.log(left().length)`)
  expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: '', stdout: '0\n' })
})

it.skipIf(process.platform === 'win32')('keeps the rights of what it replaces', async () => {
  const secret = join(dir, 'secret.aquila')
  await model.save(secret)
  chmodSync(secret, 0o600)
  await model.save(secret)
  expect(statSync(secret).mode & 0o777).toBe(0o600)
  chmodSync(secret, 0o444)
  await expectError(() => model.save(secret), 'IO', /secret\.aquila: .*read-only: make it writable/)
})

it('refuses a read-only array as well', async () => {
  const array = join(dir, 'a.npz')
  writeFileSync(array, 'old')
  chmodSync(array, 0o444)
  const one = Csr.from({
    rows: 1,
    cols: 1,
    indptr: new Uint32Array([0, 0]),
    indices: new Uint32Array(0),
    values: new Float32Array(0),
  })
  await expectError(() => writeNpz(array, one), 'IO', /read-only/)
  expect(readFileSync(array, 'utf8')).toBe('old')
})

it.skipIf(process.platform === 'win32')(
  'the command line keeps rights too, and looks at them before the work',
  async () => {
    const [m, tree] = [join(dir, 'm.aquila'), join(dir, 'tree.json')]
    await model.save(m)
    writeFileSync(tree, 'old')
    chmodSync(tree, 0o640)
    expect((await cli('inspect', m, '--tree', tree)).code).toBe(0)
    expect(statSync(tree).mode & 0o777).toBe(0o640)
    chmodSync(tree, 0o444)
    const refused = await cli('inspect', m, '--tree', tree)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/tree\.json: is read-only: make it writable/)
  },
)
