// A dense block beside sparse rows, and alone, against the same rows with all columns sparse: both ways are ours, and
// with a --python that has PECOS its training and answers on those rows, which is how X-Transformer joins them, stand
// beside them.
//
//   node bench/dense.mjs [--features FOLDER --sets A,B] [--cols 384] [--length 0.5]
//                        [--rounds 3] [--threads 2] [--python PROGRAM] [--out FILE.json]
//
// Without features it makes a set. Embeddings are made here, of words that stand in the same rows ("random indexing"),
// and have the length of --length beside sparse rows of length 1. Answers are compared: a P@k that is worse than the
// sparse way's in the same tree by more than the tolerance ends the run with exit code 1 and no file. (Trees of their
// own differ, since label vectors keep a block whole, and two trees differ in P@k as two seeds do.)

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../scripts/lib/run.mjs'
import { built } from './lib/built.mjs'
import { tolerance } from './lib/compare.mjs'
import { generate } from './lib/generator.mjs'
import { busyShare, today } from './lib/machine.mjs'
import { stream } from './lib/random.mjs'
import { circumstances, record } from './lib/record.mjs'
import { RANKS, rankScores, score } from './lib/score.mjs'
import { file, setsOf } from './lib/sets.mjs'
import { data, peerVersions, turn } from './lib/systems.mjs'

const { Csr, Dense, Features, readNpz, runtime, writeNpz, XLinear } = await built()

const { values: options } = parseArgs({
  options: {
    features: { type: 'string' },
    sets: { type: 'string' },
    cols: { type: 'string', default: '384' },
    length: { type: 'string', default: '0.5' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: '2' },
    scale: { type: 'string', default: '0.05' },
    python: { type: 'string' },
    out: { type: 'string', default: join(root, 'bench/results', `${today()}-dense.json`) },
  },
})
const [cols, length, rounds, threads, size] = [
  options.cols,
  options.length,
  options.rounds,
  options.threads,
  options.scale,
].map(Number)
if (![cols, length, rounds, threads, size].every((n) => n > 0))
  throw new Error('Expected numbers above 0 for --cols, --length, --rounds, --threads and --scale')

/** Scales each row of `cols` values to this length. */
function scale(values, cols, to) {
  for (let begin = 0; begin < values.length; begin += cols) {
    const row = values.subarray(begin, begin + cols)
    const squares = row.reduce((sum, v) => sum + v * v, 0)
    if (squares > 0) for (let j = 0; j < cols; j++) row[j] *= to / Math.sqrt(squares)
  }
  return values
}

/** A direction for each word: the sum of random signs of the rows that it stands in, so that words of the same rows
 * point alike. */
function directions(x, cols) {
  const { indptr, indices, values } = x.toArrays()
  const out = new Float32Array(x.cols * cols)
  const next = stream(1)
  const signs = new Float32Array(cols)
  for (let i = 0; i < x.rows; i++) {
    for (let j = 0; j < cols; j++) signs[j] = next() < 0.5 ? -1 : 1
    for (let at = indptr[i]; at < indptr[i + 1]; at++) {
      const [begin, value] = [indices[at] * cols, values[at]]
      for (let j = 0; j < cols; j++) out[begin + j] += value * signs[j]
    }
  }
  return scale(out, cols, 1)
}

/** Rows of this length, summed from their words' directions. */
function embed(x, words, cols) {
  const { indptr, indices, values } = x.toArrays()
  const out = new Float32Array(x.rows * cols)
  for (let i = 0; i < x.rows; i++) {
    const row = out.subarray(i * cols, (i + 1) * cols)
    for (let at = indptr[i]; at < indptr[i + 1]; at++) {
      const [begin, value] = [indices[at] * cols, values[at]]
      for (let j = 0; j < cols; j++) row[j] += value * words[begin + j]
    }
  }
  return scale(out, cols, length)
}

/** Sparse rows of length 1, or none, with the block's values as entries behind them. */
function joined(x, block, cols) {
  const { indptr, indices, values } = x.toArrays()
  const [rows, nnz] = [x.rows, indices.length + block.length]
  const out = {
    indptr: new Float64Array(rows + 1),
    indices: new Uint32Array(nnz),
    values: new Float32Array(nnz),
  }
  let to = 0
  for (let i = 0; i < rows; i++) {
    for (let at = indptr[i]; at < indptr[i + 1]; at++, to++)
      [out.indices[to], out.values[to]] = [indices[at], values[at]]
    for (let j = 0; j < cols; j++, to++) [out.indices[to], out.values[to]] = [x.cols + j, block[i * cols + j]]
    out.indptr[i + 1] = to
  }
  return Csr.from({ rows, cols: x.cols + cols, ...out })
}

const none = (rows) =>
  Csr.from({
    rows,
    cols: 0,
    indptr: new Uint32Array(rows + 1),
    indices: new Uint32Array(0),
    values: new Float32Array(0),
  })

/** Microseconds of single queries: each row's best of three rounds, their median. */
function single(model, xt) {
  const searcher = model.searcher({ k: 10, beam: 10 })
  const rows = Array.from({ length: Math.min(500, xt.rows) }, (_, i) =>
    xt.row(Math.floor((i * xt.rows) / 500)),
  )
  const best = new Float64Array(rows.length).fill(Number.POSITIVE_INFINITY)
  for (let round = 0; round < 4; round++)
    for (const [i, { indices, values, dense }] of rows.entries()) {
      const start = performance.now()
      searcher.search(indices, values, dense)
      if (round > 0) best[i] = Math.min(best[i], 1000 * (performance.now() - start))
    }
  return best.sort()[best.length >> 1]
}

const least = (a, b) =>
  Object.fromEntries(
    Object.entries(b).map(([k, v]) => [k, typeof v === 'number' && a ? Math.min(a[k], v) : v]),
  )

async function once({ x, y, xt, truth, labelTree: given }) {
  const model = await XLinear.train(x, y, { labelTree: given }, { threads, seed: 0 })
  let batchUs = Number.POSITIVE_INFINITY
  let top
  for (let i = 0; i < 3; i++) {
    const start = performance.now()
    top = await model.predict(xt, { k: 10, beam: 10 }, { threads })
    batchUs = Math.min(batchUs, (1000 * (performance.now() - start)) / xt.rows)
  }
  const { precision } = score(truth, rankScores(top.toCsr(y.cols).toArrays()))
  const { labelVectors, tree, layers, layout, total } = model.report.seconds
  const result = {
    trainSeconds: total,
    labelVectors,
    tree,
    layers,
    layout,
    batchUs,
    singleUs: single(model, xt),
    modelBytes: model.info.bytes,
    precision,
  }
  const labelTree = model.tree()
  model.close()
  return { result, labelTree }
}

/** What `work` finds in a folder of its own, which is gone afterwards. */
async function inFolder(work) {
  const folder = await mkdtemp(join(tmpdir(), 'aquila-dense-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The best of PECOS's turns on these rows, all of whose columns are sparse. */
const pecos = ({ x, xt }, y, yt) =>
  inFolder(async (folder) => {
    const name = 'entries'
    for (const [part, matrix] of Object.entries({ 'X.trn': x, 'Y.trn': y, 'X.tst': xt, 'Y.tst': yt }))
      await writeNpz(file(folder, name, part), matrix, { compressed: false })
    await data('prepare', folder, name, folder)
    const { python } = options
    const fixed = { k: 10, beam: 10, repeat: 3, queries: 500, singleRounds: 3 }
    let best
    for (let round = 0; round < rounds; round++) {
      const found = await turn('pecos', { name, folder, threads, python, ...fixed })
      const { trainSeconds, modelBytes, precision } = found
      const [batchUs, singleUs] = [1000 * found.batchMsPerRow, 1000 * found.singleMedianMs]
      best = least(best, { trainSeconds, batchUs, singleUs, modelBytes, precision })
    }
    return best
  })

async function compare(name, { x, y, xt, yt }) {
  const words = directions(x, cols)
  const [e, et] = [embed(x, words, cols), embed(xt, words, cols)]
  const dense = (rows, values) => Dense.from({ rows, cols, values })
  const truth = yt.toArrays()
  const ways = {
    sparse: { x, xt },
    'beside, as entries': { x: joined(x, e, cols), xt: joined(xt, et, cols) },
    beside: { x: Features.from(x, dense(x.rows, e)), xt: Features.from(xt, dense(xt.rows, et)) },
    'alone, as entries': { x: joined(none(x.rows), e, cols), xt: joined(none(xt.rows), et, cols) },
    alone: {
      x: Features.from(undefined, dense(x.rows, e)),
      xt: Features.from(undefined, dense(xt.rows, et)),
    },
  }
  const results = {}
  const trees = {}
  for (let round = 0; round < rounds; round++)
    for (const [way, rows] of Object.entries(ways)) {
      const { result, labelTree } = await once({ ...rows, y, truth })
      results[way] = least(results[way], result)
      trees[way] = labelTree
    }
  const ratios = {}
  const worse = []
  for (const way of ['beside', 'alone']) {
    const [ours, entries] = [results[way], results[`${way}, as entries`]]
    ratios[way] = Object.fromEntries(
      ['trainSeconds', 'layers', 'batchUs', 'singleUs'].map((k) => [k, entries[k] / ours[k]]),
    )
    // What could be reached beside sparse rows if the block cost nothing, and what the block alone adds to them.
    if (way === 'beside') {
      const [measures, { sparse }] = [Object.keys(ratios[way]), results]
      const each = (ratio) => Object.fromEntries(measures.map((k) => [k, ratio(k)]))
      ratios['beside, at most'] = each((k) => entries[k] / sparse[k])
      ratios['beside, what the block adds'] = each((k) => (entries[k] - sparse[k]) / (ours[k] - sparse[k]))
    }
    if (options.python !== undefined) {
      const theirs = await pecos(ways[`${way}, as entries`], y, yt)
      results[`${way}, PECOS`] = theirs
      ratios[`${way}, PECOS`] = Object.fromEntries(
        ['trainSeconds', 'batchUs', 'singleUs'].map((k) => [k, theirs[k] / ours[k]]),
      )
    }
    const alike = await once({ ...ways[`${way}, as entries`], y, truth, labelTree: trees[way] })
    entries.precisionInTheSameTree = alike.result.precision
    for (const k of RANKS) {
      const theirs = entries.precisionInTheSameTree[k]
      if (theirs - ours.precision[k] > tolerance(xt.rows))
        worse.push(`${name}, ${way}: P@${k} is ${ours.precision[k]}, as entries ${theirs}`)
    }
  }
  return {
    name,
    rows: x.rows,
    labels: y.cols,
    sparseColumns: x.cols,
    entriesPerRow: x.nnz / x.rows,
    results,
    ratios,
    worse,
  }
}

const setNames = () => options.sets?.split(',') ?? setsOf(options.features)

function sets() {
  if (options.features === undefined) {
    const { trn, tst } = generate(size, 0)
    const matrix = (m) => Csr.from(m)
    return [
      [
        `generated, scale ${size}`,
        { x: matrix(trn.x), y: matrix(trn.y), xt: matrix(tst.x), yt: matrix(tst.y) },
      ],
    ]
  }
  return setNames().map((name) => [name, options.features])
}

const peers =
  options.python === undefined ? {} : await inFolder((folder) => peerVersions(options.python, folder))
if (options.python !== undefined && !peers.pecos) throw new Error(`${options.python} has no PECOS`)

const round = (v) => Number(v.toPrecision(4))
const sources = options.features === undefined ? `--scale ${size}` : `--features DIR --sets ${setNames()}`
const told = `node bench/dense.mjs ${sources} --cols ${cols} --length ${length} --rounds ${rounds} --threads ${threads}${options.python === undefined ? '' : ' --python PYTHON'}`
const made = circumstances(told, runtime)
const report = {
  ...made,
  versions: { ...made.versions, ...peers },
  busy: await busyShare(),
  cols,
  length,
  rounds,
  threads,
  sets: [],
}
for (const [name, from] of sets()) {
  const read = (part) => readNpz(file(from, name, part))
  const rows =
    typeof from === 'string'
      ? { x: await read('X.trn'), y: await read('Y.trn'), xt: await read('X.tst'), yt: await read('Y.tst') }
      : from
  const set = await compare(name, rows)
  report.sets.push(set)
  process.stdout.write(`${name}\n`)
  for (const [way, r] of Object.entries(set.results))
    process.stdout.write(
      `  ${way.padEnd(20)} train ${round(r.trainSeconds)} s${r.layers ? ` (layers ${round(r.layers)})` : ''}, batch ${round(r.batchUs)} us/row, single ${round(r.singleUs)} us, ${round(r.modelBytes / 1e6)} MB, P@k ${RANKS.map((k) => r.precision[k].toFixed(2)).join('/')}\n`,
    )
  for (const [way, r] of Object.entries(set.ratios))
    process.stdout.write(
      `  ${way}: ${Object.entries(r)
        .map(([k, v]) => `${k} ${v.toFixed(2)}x`)
        .join(', ')}\n`,
    )
}
const worse = report.sets.flatMap((set) => set.worse)
if (worse.length > 0) {
  process.stderr.write(`${worse.join('\n')}\n`)
  process.exit(1)
}
await record(resolve(options.out).replace(/\.json$/, ''), { json: `${JSON.stringify(report, null, 2)}\n` })
