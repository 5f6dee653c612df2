// Work on data sets, each piece as a process of its own: the system counts the memory of a large parent as its
// children's, and the runner's must not spoil what the systems are measured by.
//
//   node data.mjs prepare FEATURES NAME FOLDER [text]   rows of length 1 for all systems; prints what the set is
//   node data.mjs versions                            prints the versions of ours
//   node data.mjs score TRUTH.npz ANSWERS K             prints the quality of .npz scores or of an .i32 table

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Csr, readNpz, runtime, writeNpz, writeXmc } from '../../dist/index.js'
import { versions } from './machine.mjs'
import { rankScores, rankTable, score } from './score.mjs'
import { file, PARTS } from './sets.mjs'

async function sha256(path) {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** Every row scaled to length 1; rows of zeros stay. */
function unitRows(matrix) {
  const { indptr, indices, values } = matrix.toArrays()
  for (let i = 0; i < matrix.rows; i++) {
    let squares = 0
    for (let at = indptr[i]; at < indptr[i + 1]; at++) squares += values[at] * values[at]
    if (squares === 0) continue
    const scale = 1 / Math.sqrt(squares)
    for (let at = indptr[i]; at < indptr[i + 1]; at++) values[at] *= scale
  }
  return Csr.from({ rows: matrix.rows, cols: matrix.cols, indptr, indices, values })
}

async function prepare(features, name, folder, text) {
  const sums = {}
  const read = {}
  for (const part of PARTS) {
    const path = file(features, name, part)
    sums[part] = await sha256(path)
    read[part] = await readNpz(path)
    if (part.startsWith('X')) read[part] = unitRows(read[part])
    await writeNpz(file(folder, name, part), read[part], { compressed: false })
  }
  if (text) await writeXmc(join(folder, `${name}.trn.txt`), read['X.trn'], read['Y.trn'])
  const [x, y, xt] = [read['X.trn'], read['Y.trn'], read['X.tst']]
  return {
    name,
    rows: x.rows,
    testRows: xt.rows,
    features: x.cols,
    labels: y.cols,
    entriesPerRow: x.nnz / x.rows,
    labelsPerRow: y.nnz / y.rows,
    sha256: sums,
  }
}

/** The answers of a file as ranked labels: scores in .npz, or little-endian 32-bit labels, `k` a row. */
async function answers(path, k) {
  if (path.endsWith('.npz')) return rankScores((await readNpz(path)).toArrays())
  const bytes = await readFile(path)
  const table = new Int32Array(bytes.length / 4)
  for (let i = 0; i < table.length; i++) table[i] = bytes.readInt32LE(4 * i)
  return rankTable(table, k)
}

async function main([verb, ...args]) {
  if (verb === 'prepare') {
    const [features, name, folder, text] = args
    return prepare(features, name, folder, text === 'text')
  }
  if (verb === 'versions') return versions(runtime)
  const [truth, path, k] = args
  return score((await readNpz(truth)).toArrays(), await answers(path, Number(k)))
}

try {
  process.stdout.write(`${JSON.stringify(await main(process.argv.slice(2)))}\n`)
} catch (error) {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
