// How soon readers and writers of files end once they are cancelled, and what they leave.

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
} from 'aquila-xmc'
import { beforeAll, expect, it } from 'vitest'
import { folder, slowestEnd } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)

/** Entries of a matrix with ten in each row: enough that every call takes some tenths of a second at least. */
const ENTRIES = 30_000_000
let [x, y]: Csr[] = []
let dense: Dense

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
