// How soon readers and writers of files end once they are cancelled, and what they leave.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type CallOptions,
  Csr,
  Dense,
  readLibsvm,
  readNpy,
  readNpz,
  readXmc,
  writeLibsvm,
  writeNpy,
  writeNpz,
  writeXmc,
  XLinear,
} from 'aquila-xmc'
import { beforeAll, expect, it } from 'vitest'
import { expectError, folder, problem, sleep, slowestEnd } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)

/** Entries of a matrix with ten in each row: enough that every call takes some tenths of a second at least. */
const ENTRIES = 30_000_000
let [x, y]: Csr[] = []
let dense: Dense
let model: XLinear

beforeAll(async () => {
  const rows = ENTRIES / 10
  const values = Float32Array.from({ length: ENTRIES }, (_, n) => (n % 997) / 64)
  const indices = Uint32Array.from({ length: ENTRIES }, (_, n) => (n % 10) * 50 + (n % 7))
  const every = (step: number) => Uint32Array.from({ length: rows + 1 }, (_, i) => i * step)
  x = Csr.from({ rows, cols: 500, indptr: every(10), indices, values })
  const ones = new Float32Array(rows).fill(1)
  y = Csr.from({ rows, cols: 3, indptr: every(1), indices: new Uint32Array(rows), values: ones })
  dense = Dense.from({ rows: ENTRIES / 10, cols: 10, values })
  await writeNpz(place('in.npz'), x, { compressed: false })
  await writeNpz(place('in.npz.gz'), x)
  await writeNpy(place('in.npy'), dense)
  await writeXmc(place('in.txt'), x, y)
  await writeLibsvm(place('in.svm'), x, y)
  const small = problem({ rows: 100, labels: 10 })
  // Its weight lies in its names: none of the work on its file looks at what the bytes mean.
  const featureNames = Array<string>(small.x.cols).fill('x'.repeat(10_000_000))
  model = await XLinear.train(small.x, small.y, { featureNames })
  await model.save(place('in.aquila'))
  const light = await XLinear.train(small.x, small.y)
  await light.save(place('light.aquila'))
  await light.save(place('slow.aquila'))
})

const one = { threads: 1 }
const calls: [string, (call: CallOptions) => Promise<unknown>][] = [
  ['readNpz', (call) => readNpz(place('in.npz'), call)],
  ['readNpz of gzip', (call) => readNpz(place('in.npz.gz'), call)],
  ['readNpy', (call) => readNpy(place('in.npy'), call)],
  ['readXmc', (call) => readXmc(place('in.txt'), { ...call, ...one })],
  ['readLibsvm', (call) => readLibsvm(place('in.svm'), {}, { ...call, ...one })],
  ['writeNpz', (call) => writeNpz(place('out'), x as Csr, {}, call)],
  ['writeNpz of gzip', (call) => writeNpz(place('out.gz'), x as Csr, {}, call)],
  ['writeNpz, stored', (call) => writeNpz(place('out'), x as Csr, { compressed: false }, call)],
  ['writeNpy', (call) => writeNpy(place('out'), dense, call)],
  ['writeXmc', (call) => writeXmc(place('out'), x as Csr, y as Csr, call)],
  ['open', (call) => XLinear.open(place('in.aquila'), {}, call)],
  ['open with verify', (call) => XLinear.open(place('in.aquila'), { verify: true }, call)],
  ['verify', (call) => model.verify(call)],
  ['save', (call) => model.save(place('out'), call)],
  ['writeLibsvm', (call) => writeLibsvm(place('out'), x as Csr, y as Csr, {}, call)],
]

it.each(calls)('%s ends within 200 ms', async (_, work) => {
  const settled = async (signal: AbortSignal) => {
    writeFileSync(place('out'), 'old')
    const before = readdirSync(dir)
    const made = await work({ signal }).catch((error) => {
      expect(readdirSync(dir)).toEqual(before)
      expect(readFileSync(place('out'), 'utf8')).toBe('old')
      throw error
    })
    // What ended before it was aborted is no more than memory.
    for (const matrix of Object.values({ made, ...(made as object) })) (matrix as Csr)?.close?.()
  }
  expect(await slowestEnd([0, 50, 150, 300], settled)).toBeLessThan(200)
})

it.skipIf(process.platform === 'win32')('a pipe is no model, and holds up no other', async () => {
  execFileSync('mkfifo', [place('pipe')])
  const refused = expectError(() => XLinear.open(place('pipe')), 'BAD_MODEL', /pipe: this is no file$/)
  const light = await XLinear.open(place('light.aquila'))
  light.close()
  await refused
})

/** Takes a lease on a file, so that all who open it wait as on a disk that does not answer, until its input ends. */
const LEASE = `
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()
`
const leased = process.platform === 'linux' && spawnSync('python3', ['--version']).status === 0

it.runIf(leased)('a file that does not open ends with its signal, and holds up no other', async () => {
  const holder = spawn('python3', ['-c', LEASE, place('slow.aquila')], { stdio: ['pipe', 'pipe', 'inherit'] })
  const left = once(holder, 'close')
  await once(holder.stdout, 'data')
  let others = 0
  const settled = async (signal: AbortSignal) => {
    const opened = XLinear.open(place('slow.aquila'), {}, { signal })
    const [light, again] = await Promise.all([
      XLinear.open(place('light.aquila')),
      XLinear.open(place('light.aquila')),
    ])
    for (const other of [light, again]) other.close()
    others++
    return opened
  }
  expect(await slowestEnd([100, 300], settled)).toBeLessThan(200)
  expect(others).toBeGreaterThan(1)
  const late = XLinear.open(place('slow.aquila'))
  await sleep(50)
  holder.stdin.end()
  await left
  const opened = await late
  expect(opened.isOpen).toBe(true)
  opened.close()
})
