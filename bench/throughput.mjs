// What ours does a second, alone: reading files, predicting, single queries by instruction set, opening models.
//
//   node bench/throughput.mjs [--scale 0.05] [--rounds 5] [--threads 1,2] [--out FILE.json]
//
// Each figure comes with a check of the answers; a wrong one ends the run with exit code 1 and no file.

import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { root } from '../scripts/lib/run.mjs'
import { built } from './lib/built.mjs'
import { generate } from './lib/generator.mjs'
import { busyShare, commit, machine, today, versions } from './lib/machine.mjs'
import { digits } from './lib/report.mjs'
import { rankTable, score } from './lib/score.mjs'
import { call } from './lib/systems.mjs'

const { Csr, readNpz, readXmc, runtime, writeNpz, writeXmc, XLinear } = await built()

const USAGE = 'node bench/throughput.mjs [--scale 0.05] [--rounds 5] [--threads 1,2] [--out FILE.json]'
const SEED = 0
const SEARCH = { k: 10, beam: 10 }
/** P@1 that the defaults reach on the generated set of a scale, on average of so many seeds, for one of them may be 1.2
 * points from it; a faster engine must not get there by less. */
const EXPECTED = { 0.01: 63.3, 0.05: 63.3 }
const SEEDS = 8
const LEEWAY = 0.5

const single = fileURLToPath(new URL('./lib/single.mjs', import.meta.url))
const problems = []

function check(holds, what) {
  if (!holds) problems.push(what)
}

const digestOf = (...arrays) =>
  arrays.reduce((hash, array) => hash.update(array), createHash('sha256')).digest('hex')
const digestOfMatrix = (matrix) => {
  const { indptr, indices, values } = matrix.toArrays()
  return digestOf(indptr, indices, values)
}

/** The least milliseconds of several rounds, and the last round's result. */
async function best(rounds, work) {
  let [ms, result] = [Number.POSITIVE_INFINITY]
  for (let i = 0; i < rounds; i++) {
    const start = performance.now()
    result = await work()
    ms = Math.min(ms, performance.now() - start)
  }
  return { ms, result }
}

/** Reading rows and labels: megabytes of the file a second, on one thread and on all that were asked for. */
async function parsing({ x, y, folder, rounds, threads }) {
  const [wantedX, wantedY] = [digestOfMatrix(x), digestOfMatrix(y)]
  const formats = {
    npz: [(path) => writeNpz(path, x, { compressed: false }), readNpz],
    'npz, deflated': [(path) => writeNpz(path, x), readNpz],
    text: [(path) => writeXmc(path, x, y), readXmc],
    'text, gzip': [(path) => writeXmc(`${path}.gz`, x, y), (path, options) => readXmc(`${path}.gz`, options)],
  }
  const rows = []
  for (const [format, [write, read]] of Object.entries(formats)) {
    const path = join(folder, 'parse')
    await write(path)
    const { size } = await stat(format.endsWith('gzip') ? `${path}.gz` : path)
    for (const count of threads) {
      const { ms, result } = await best(rounds, () => read(path, { threads: count }))
      const found = result instanceof Csr ? { x: result, y } : result
      check(digestOfMatrix(found.x) === wantedX, `${format}: other rows than were written`)
      check(digestOfMatrix(found.y) === wantedY, `${format}: other labels than were written`)
      rows.push({
        format,
        threads: count,
        bytes: size,
        megabytesPerSecond: size / 1e3 / ms,
        entriesPerSecond: (1e3 * x.nnz) / ms,
      })
    }
  }
  return rows
}

const precisionOf = (result, yt) => {
  const table = new Int32Array(yt.rows * SEARCH.k).fill(-1)
  for (let i = 0; i < yt.rows; i++) table.set(result.row(i).labels, i * SEARCH.k)
  return score(yt.toArrays(), rankTable(table, SEARCH.k)).precision
}

/** Models of several seeds are as good as is known of this scale. */
async function learning({ x, y, xt, yt, scale }) {
  const expected = EXPECTED[scale]
  if (expected === undefined) return
  let sum = 0
  for (let seed = 0; seed < SEEDS; seed++) {
    const model = await XLinear.train(x, y, {}, { seed })
    sum += precisionOf(await model.predict(xt, SEARCH), yt)[1]
    model.close()
  }
  const mean = sum / SEEDS
  check(mean >= expected - LEEWAY, `P@1 is ${mean.toFixed(2)} on average instead of ${expected}`)
}

/** Predicting a whole matrix: rows a second. The answers must be the same bytes for any number of threads. */
async function predicting({ model, xt, yt, rounds, threads }) {
  const digests = new Set()
  const rows = []
  for (const count of threads) {
    const { ms, result } = await best(rounds, () => model.predict(xt, SEARCH, { threads: count }))
    digests.add(digestOf(result.indptr, result.labels, result.scores))
    rows.push({ threads: count, rowsPerSecond: (1e3 * xt.rows) / ms, precision: precisionOf(result, yt) })
  }
  check(digests.size === 1, 'predictions differ with the number of threads')
  return rows
}

/**
 * Single queries, with every instruction set of this processor: nanoseconds, and the same answers of all. Sums are
 * rounded in another order, so scores may differ in their last bits and labels of nearly the same score change places.
 */
async function querying({ path, rowsPath, rounds }) {
  const rows = []
  let first
  for (const isa of runtime.simd().available) {
    const args = [single, path, rowsPath, '500', String(rounds)]
    const found = JSON.parse(await call(process.execPath, args, { env: { AQUILA_ISA: isa } }))
    first ??= found
    check(found.simd === isa, `AQUILA_ISA=${isa} was answered with ${found.simd}`)
    const near = found.scores.every((score, i) => Math.abs(score - first.scores[i]) <= 1e-5 * first.scores[i])
    const same = found.labels.filter((label, i) => label === first.labels[i]).length
    check(
      near && found.labels.length === first.labels.length && same >= 0.999 * first.labels.length,
      `single answers with ${isa} differ from those with ${rows[0]?.isa}`,
    )
    rows.push({ isa, medianNs: found.medianNs, p99Ns: found.p99Ns })
  }
  return rows
}

/** Opening a model and asking it once, nothing of it open before: milliseconds by size of the file. */
async function opening(models, rounds) {
  const rows = []
  for (const { path, row, first, labels } of models) {
    const opens = []
    const asks = []
    for (let i = 0; i < 4 * rounds; i++) {
      const start = performance.now()
      const model = await XLinear.open(path)
      const opened = performance.now()
      const { labels: found } = model.predictOne(row, SEARCH)
      asks.push(performance.now() - opened)
      opens.push(opened - start)
      check(digestOf(found) === first, `${path}: another answer than before it was saved`)
      check(model.info.labels === labels, `${path}: ${model.info.labels} labels`)
      model.close()
    }
    const median = (times) => times.sort((a, b) => a - b)[times.length >> 1]
    const { size } = await stat(path)
    rows.push({ bytes: size, labels, openMs: median(opens), firstQueryMs: median(asks) })
  }
  return rows
}

function read() {
  const { values } = parseArgs({
    options: {
      scale: { type: 'string', default: '0.05' },
      rounds: { type: 'string', default: '5' },
      threads: { type: 'string', default: '1,2' },
      out: { type: 'string', default: join(root, `bench/results/${today()}-throughput.json`) },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  const options = {
    scale: Number(values.scale),
    rounds: Number(values.rounds),
    threads: values.threads.split(',').map(Number),
    out: resolve(values.out),
  }
  const counts = [options.rounds, ...options.threads]
  if (!(options.scale > 0 && options.scale <= 4) || !counts.every((n) => Number.isSafeInteger(n) && n > 0))
    throw new Error(`Expected numbers above 0, a scale of at most 4: ${USAGE}`)
  return options
}

/** A row as a person reads it. */
function shorter({ precision, ...row }) {
  const entries = Object.entries({ ...row, ...(precision && { 'P@1': precision[1] }) })
  return Object.fromEntries(
    entries.map(([name, value]) => [name, Number.isInteger(value) ? value : shown(value)]),
  )
}

const shown = (value) => (typeof value === 'number' ? Number(digits(value)) : value)

async function main() {
  const options = read()
  if (!options) return console.log(USAGE)
  const { scale, rounds, threads } = options
  const busy = await busyShare()
  if (busy > 0.1) console.log(`the machine is busy with other work: ${(100 * busy).toFixed(0)} %`)
  const folder = await mkdtemp(join(tmpdir(), 'aquila-throughput-'))
  try {
    const models = []
    let data
    for (const size of [scale / 10, scale / 3, scale]) {
      const { trn, tst } = generate(size, SEED)
      data = { x: Csr.from(trn.x), y: Csr.from(trn.y), xt: Csr.from(tst.x), yt: Csr.from(tst.y) }
      const model = await XLinear.train(data.x, data.y, {}, { seed: SEED })
      const path = join(folder, `${models.length}.aquila`)
      await model.save(path)
      const row = data.xt.row(0)
      const first = digestOf(model.predictOne(row, SEARCH).labels)
      model.close()
      models.push({ path, row, first, labels: trn.y.cols })
    }
    const { path } = models.at(-1)
    const rowsPath = join(folder, 'rows.npz')
    await writeNpz(rowsPath, data.xt, { compressed: false })

    const parse = await parsing({ ...data, folder, rounds, threads })
    const model = await XLinear.open(path)
    const predict = await predicting({ ...data, model, rounds, threads })
    await learning({ ...data, scale })
    model.close()
    const query = await querying({ path, rowsPath, rounds })
    const open = await opening(models, rounds)
    if (problems.length > 0) throw new Error(`wrong answers:\n  ${[...new Set(problems)].join('\n  ')}`)

    const results = {
      format: 1,
      kind: 'throughput',
      date: today(),
      command: `node bench/throughput.mjs --scale ${scale} --rounds ${rounds} --threads ${threads.join(',')}`,
      commit: commit(),
      machine: { ...machine(), busiest: busy },
      versions: versions(runtime),
      set: { scale, seed: SEED, rows: data.x.rows, features: data.x.cols, labels: data.y.cols },
      parse,
      predict,
      query,
      open,
    }
    await mkdir(dirname(options.out), { recursive: true })
    await writeFile(options.out, `${JSON.stringify(results, null, 1)}\n`)
    for (const name of ['parse', 'predict', 'query', 'open']) {
      console.log(name)
      console.table(results[name].map(shorter))
    }
    console.log(`all answers as expected; ${options.out}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`throughput: ${error.message}\n`)
  process.exitCode = 1
}
