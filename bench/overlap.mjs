// Labels under several leaves, the experiments of the paper on label disentanglement: real labels by the number of
// leaves, fused labels, homonyms made to measure. See README.md beside this file.
//
//   node bench/overlap.mjs --features DIR [--sets a,b] [--seeds 3] [--parts copies,fused,homonyms]

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from '../scripts/lib/run.mjs'
import { built } from './lib/built.mjs'
import { command, count, list, optionsOf, Refusal, say } from './lib/command.mjs'
import { fuse, fused, labelsOf, MODES, vectorsOf } from './lib/fused.mjs'
import {
  clones,
  dealt,
  draw,
  labelCount,
  SHAPE,
  separated,
  topicsOf,
  variationOfInformation,
} from './lib/homonyms.mjs'
import { markdown, pictures } from './lib/overlap-report.mjs'
import { stream } from './lib/random.mjs'
import { circumstances, record } from './lib/record.mjs'
import { RANKS } from './lib/score.mjs'
import { file, PARTS, setsOf } from './lib/sets.mjs'

const USAGE = `Labels under several leaves, on the sets of a folder: NAME.{X,Y}.{trn,tst}.npz.

  node bench/overlap.mjs --features DIR [options]

  --features DIR   the folder of the sets
  --sets a,b       only these sets (default: all of the folder that have 500 to 100,000 labels)
  --parts a,b      of copies, fused, homonyms (default: all)
  --seeds N        seeds 0 to N − 1 (default: 3)
  --fused-seeds N  as many for fused labels (default: 1)
  --copies N       up to so many leaves a label (default: 6)
  --threads N      threads (default: 2)
  --out DIR        where results go (default: bench/results)
  --name NAME      the second part of their names (default: overlap)`

const SECTIONS = ['copies', 'fused', 'homonyms']
const SIZES = [2, 4, 8]
/** Sets of fewer labels have no use for further leaves; those of more take hours. */
const [LEAST, MOST] = [500, 100_000]

function read() {
  const values = optionsOf({
    features: { type: 'string' },
    sets: { type: 'string' },
    parts: { type: 'string', default: SECTIONS.join(',') },
    seeds: { type: 'string', default: '3' },
    'fused-seeds': { type: 'string', default: '1' },
    copies: { type: 'string', default: '6' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: join(root, 'bench/results') },
    name: { type: 'string', default: 'overlap' },
  })
  if (!values) return undefined
  const parts = list(values.parts, SECTIONS, 'parts')
  const { features, name } = values
  if (features === undefined && parts.some((part) => part !== 'homonyms'))
    throw new Refusal('Expected --features DIR; --help tells more')
  if (features !== undefined && !existsSync(features)) throw new Refusal(`${features}: no such folder`)
  const there = features === undefined ? [] : setsOf(features)
  if (!/^[\w.-]+$/.test(name)) throw new Refusal('Expected letters, digits, dots and dashes for --name')
  return {
    features: features && resolve(features),
    sets: values.sets === undefined ? undefined : list(values.sets, there, 'sets'),
    there,
    parts,
    seeds: count(values, 'seeds', 1),
    fusedSeeds: count(values, 'fused-seeds', 1),
    copies: count(values, 'copies', 2),
    threads: count(values, 'threads', 1),
    out: resolve(values.out),
    name,
  }
}

/** What a reader types for the same results; folders of this machine say nothing to them. */
const commandOf = ({ sets, parts, seeds, fusedSeeds, copies, threads }) =>
  [
    `node bench/overlap.mjs --features DIR${sets ? ` --sets ${sets.join(',')}` : ''} --parts ${parts.join(',')}`,
    `--seeds ${seeds} --fused-seeds ${fusedSeeds} --copies ${copies} --threads ${threads}`,
  ].join(' ')

/**
 * What sets of this many labels are trained with: of a few hundred labels a search enters all leaves unless they are
 * small, and then there is room for more labels in each.
 */
const settings = (labels) =>
  labels < 2000
    ? { tree: { maxLeaf: Math.max(4, Math.min(16, Math.floor(labels / 32))) }, leafCap: 4 }
    : { tree: {}, leafCap: 2 }

const rounded = (value, digits = 4) => Number(value.toFixed(digits))

/** The time of a prediction is the best of that many. */
const REPEATS = 3

/** Labels of the largest leaf under this part of a tree; those under the root are in none. */
const largest = (part, root = true) =>
  part.filter(Array.isArray).reduce((most, child) => Math.max(most, largest(child, false)), 0) ||
  (root ? 0 : part.length)

/** Trains and asks once. The tree comes along as JSON: models are not kept. */
async function measure({ XLinear, evaluate }, { x, y, xt, yt }, options, { seed, threads }) {
  const model = await XLinear.train(x, y, options, { seed, threads })
  let best = Number.POSITIVE_INFINITY
  let top
  for (let i = 0; i < REPEATS; i++) {
    const since = performance.now()
    top = await model.predict(xt, { k: Math.max(...RANKS), beam: 10 }, { threads })
    best = Math.min(best, performance.now() - since)
  }
  const { precision } = await evaluate(top, yt, { k: RANKS })
  const { slots, several, bytes } = model.info
  const tree = JSON.parse(model.tree().toJson())
  const run = {
    precision: RANKS.map((k) => rounded(100 * precision[k])),
    seconds: rounded(model.report.seconds.total),
    msPerRow: rounded(best / xt.rows, 6),
    slots,
    largestLeaf: largest(tree.root),
    several,
    bytes,
  }
  model.close()
  return { run, tree }
}

/** As many further slots as two copies without labels under the root have, dealt at random: the control of the paper's A.8. */
const control = ({ LabelTree }, tree, labels, more, seed) => ({
  labelTree: LabelTree.fromJson(
    JSON.stringify({ ...tree, root: dealt(tree.root, labels, more, stream(seed, 1)) }),
  ),
})

const tell = (what, { precision, seconds, msPerRow }) =>
  say(
    `${what}: P@1/3/5 ${precision.map((v) => v.toFixed(2)).join('/')}, ${seconds.toFixed(2)} s, ${(1000 * msPerRow).toFixed(1)} µs a row`,
  )

/** Real labels: 1 to `copies` leaves; two of them without the update, dealt at random, and as in the paper. */
async function byCopies(library, name, matrices, options, add) {
  const { tree, leafCap } = settings(matrices.y.cols)
  for (let seed = 0; seed < options.seeds; seed++) {
    const call = { seed, threads: options.threads }
    const one = async (variant, more) => {
      const found = await measure(library, matrices, { tree, ...more }, call)
      tell(`${name} seed ${seed}, ${variant}`, found.run)
      await add({ seed, variant, ...found.run })
      return found
    }
    // A cap below the number of copies would be the bound, and not the copies.
    const overlap = (copies, more) => ({ overlap: { copies, leafCap: Math.max(leafCap, copies), ...more } })
    const plain = await one('1', {})
    for (let copies = 2; copies <= options.copies; copies++) {
      await one(String(copies), overlap(copies))
      if (copies > 2) continue
      const { run } = await one('2, none at the root', overlap(2, { rootCap: 0 }))
      await one('2, no update', overlap(2, { update: false }))
      const more = run.slots - plain.run.slots
      await one('2, at random', control(library, plain.tree, matrices.y.cols, more, seed))
    }
    // The paper's own form: the most counted leaves, whatever they hold, and the mean over those reached.
    const paper = (copies, update) => ({ overlap: { copies, update, leafCap: 0, merge: 'average' } })
    await one('paper, 1', paper(1, true))
    await one('paper, 2', paper(2, true))
    await one('paper, 2, no update', paper(2, false))
  }
}

/** Fused labels: each mode and size, without and with a second leaf. */
async function byFusing(library, name, matrices, options, add) {
  const { Csr } = library
  for (let seed = 0; seed < options.fusedSeeds; seed++) {
    const call = { seed, threads: options.threads }
    const vectors = await vectorsOf(library, matrices.x, matrices.y, call)
    for (const k of SIZES)
      for (const mode of MODES) {
        const to = await fuse(library, vectors, mode, k, stream(seed, k), call)
        const [y, yt] = [fused(Csr, matrices.y, to), fused(Csr, matrices.yt, to)]
        const { tree, leafCap } = settings(y.cols)
        const both = []
        for (const more of [{}, { overlap: { copies: 2, leafCap } }]) {
          const { run } = await measure(library, { ...matrices, y, yt }, { tree, ...more }, call)
          tell(`${name} seed ${seed}, ${mode}, ${k} fused${both.length ? ', 2 copies' : ''}`, run)
          both.push(run)
        }
        await add({ seed, mode, k, labels: y.cols, without: both[0], with: both[1] })
        y.close()
        yt.close()
      }
    vectors.close()
  }
}

/**
 * How well the leaves of homonyms tell their meanings, in bits of variation of information, the mean over the test rows
 * of homonyms: the topic of a row against the leaf in which the homonym scores best. To see single leaves, each slot
 * becomes a label of its own; the rows of a label are those of all its slots, so the classifiers are the same.
 */
async function variation({ Csr, LabelTree, XLinear }, shape, { train, test }, tree, { seed, threads }) {
  const first = shape.topics * shape.single
  const leaves = tree.root.some(Array.isArray) ? tree.root.filter(Array.isArray) : tree.root
  const { root: parts, was } = clones(leaves)
  const slots = Array.from({ length: labelCount(shape) }, () => [])
  for (const [slot, label] of was.entries()) slots[label].push(slot)
  const split = (y, keep) => {
    const rows = Array.from({ length: y.rows }, (_, i) =>
      [...y.row(i).indices]
        .filter(keep)
        .flatMap((label) => slots[label])
        .sort((a, b) => a - b),
    )
    return labelsOf(Csr, rows, was.length)
  }
  const labelTree = LabelTree.fromJson(JSON.stringify({ ...tree, labels: was.length, root: parts }))
  const model = await XLinear.train(
    train.x,
    split(train.y, () => true),
    { labelTree },
    { seed, threads },
  )
  const chosen = split(test.y, (label) => label >= first)
  const top = await model.predict(test.x, { chosen, k: was.length }, { threads })
  model.close()
  const pairs = Array.from({ length: shape.homonyms }, () => [])
  for (const [i, topic] of test.topicOf.entries()) {
    const best = new Map()
    // Best first: a label's first slot is its best.
    for (const slot of top.row(i).labels) if (!best.has(was[slot])) best.set(was[slot], slot)
    for (const [label, slot] of best) pairs[label - first].push([topic, slot])
  }
  const rows = pairs.reduce((sum, of) => sum + of.length, 0)
  return pairs.reduce((sum, of) => sum + (of.length / rows) * variationOfInformation(of), 0)
}

/** Homonyms: how many were separated, and what that is worth. */
async function byMeaning(library, shape, options, add) {
  const tree = { maxLeaf: 30 }
  const variants = [
    ['1', {}],
    ...Array.from({ length: options.copies - 1 }, (_, i) => i + 2).map((copies) => [
      String(copies),
      { overlap: { copies, leafCap: Math.max(2, copies) } },
    ]),
    ['2, none at the root', { overlap: { copies: 2, rootCap: 0 } }],
    ['2, no update', { overlap: { copies: 2, update: false } }],
    ...['average', 'max', 'sum'].map((merge) => [`2, ${merge}`, { overlap: { copies: 2, merge } }]),
  ]
  for (let seed = 0; seed < options.seeds; seed++) {
    const call = { seed, threads: options.threads }
    const next = stream(seed)
    const meant = topicsOf(shape, next)
    const [train, test] = [20_000, 5_000].map((rows) => draw(library.Csr, shape, meant, rows, next))
    const matrices = { x: train.x, y: train.y, xt: test.x, yt: test.y }
    const one = async (variant, more) => {
      const found = await measure(library, matrices, { tree, ...more }, call)
      tell(`homonyms of ${shape.meanings}, seed ${seed}, ${variant}`, found.run)
      const bits = await variation(library, shape, { train, test }, found.tree, call)
      const run = { seed, variant, ...found.run, separated: separated(found.tree.root, shape, meant) }
      await add({ ...run, variation: rounded(bits) })
      return found
    }
    const found = new Map()
    for (const [variant, more] of variants) found.set(variant, await one(variant, more))
    const [plain, two] = [found.get('1'), found.get('2, none at the root')]
    const more = two.run.slots - plain.run.slots
    await one('2, at random', control(library, plain.tree, labelCount(shape), more, seed))
    for (const matrix of Object.values(matrices)) matrix.close()
  }
}

await command('overlap', async () => {
  const options = read()
  if (!options) return say(USAGE)
  const library = await built()
  const { parts, seeds, fusedSeeds, threads } = options
  const head = circumstances(commandOf(options), library.runtime)
  const results = { ...head, options: { parts, seeds, fusedSeeds, threads }, sets: [], homonyms: [] }
  const base = join(options.out, `${results.date}-${options.name}`)
  const save = () => record(base, { json: `${JSON.stringify(results, null, 1)}\n` })
  if (parts.includes('homonyms'))
    for (const meanings of [2, 3]) {
      const shape = { ...SHAPE, meanings }
      const runs = []
      results.homonyms.push({ ...shape, labels: labelCount(shape), runs })
      await byMeaning(library, shape, options, async (run) => {
        runs.push(run)
        await save()
      })
    }
  const real = parts.filter((part) => part !== 'homonyms')
  for (const name of real.length > 0 ? (options.sets ?? options.there) : []) {
    const files = PARTS.map((part) => file(options.features, name, part))
    const [x, y, xt, yt] = await Promise.all(files.map((path) => library.readNpz(path)))
    if (options.sets || (y.cols >= LEAST && y.cols <= MOST)) {
      const set = {
        name,
        rows: x.rows,
        testRows: xt.rows,
        features: x.cols,
        labels: y.cols,
        copies: [],
        fused: [],
      }
      results.sets.push(set)
      const add = (part) => async (run) => {
        set[part].push(run)
        await save()
      }
      const matrices = { x, y, xt, yt }
      if (parts.includes('copies')) await byCopies(library, name, matrices, options, add('copies'))
      if (parts.includes('fused')) await byFusing(library, name, matrices, options, add('fused'))
    }
    for (const matrix of [x, y, xt, yt]) matrix.close()
  }
  const drawn = pictures(results)
  for (const [part, svg] of Object.entries(drawn)) await record(`${base}${part}`, { svg })
  const place = base.slice(base.lastIndexOf('/') + 1)
  await record(base, { md: markdown(results, place, Object.keys(drawn)) })
  say(`${base}.{json,md,svg}`)
})
