// Overlapping leaves on a set whose labels have two meanings by construction: copies 1 to 4, with and without the
// update, against further leaves dealt at random.
//
// Topics have words of their own and labels of one meaning; a label of two meanings stands for something in each of two
// topics, with other words in each. It counts as separated if its leaves are of both topics: the topic of a leaf is that
// of most of its labels of one meaning.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../scripts/lib/run.mjs'
import { built } from './lib/built.mjs'
import { commit, machine, today } from './lib/machine.mjs'
import { pick, shuffled, stream } from './lib/random.mjs'

const { values: given } = parseArgs({
  options: { out: { type: 'string' }, seeds: { type: 'string', default: '0,1,2' } },
})
const { Csr, LabelTree, XLinear, evaluate } = await built()

const [TOPICS, SINGLE, DOUBLE] = [60, 20, 600]
const LABELS = TOPICS * SINGLE + DOUBLE
const WORDS = TOPICS * 10 + (TOPICS * SINGLE + 2 * DOUBLE) * 3

function matrix(rows, cols) {
  const indptr = Uint32Array.from([
    0,
    ...rows.map(
      (
        (sum) => (r) =>
          (sum += r.length)
      )(0),
    ),
  ])
  return Csr.from({
    rows: rows.length,
    cols,
    indptr,
    indices: Uint32Array.from(rows.flat()),
    values: new Float32Array(indptr.at(-1)).fill(1),
  })
}

/** Rows of one topic each, two labels a row; `topics` are the two of each label of two meanings. */
function draw(next, topics, count) {
  const of = Array.from({ length: TOPICS }, (_, t) =>
    Array.from({ length: SINGLE }, (_, i) => [t * SINGLE + i, t * SINGLE + i]),
  )
  topics.forEach((pair, d) => {
    pair.forEach((t, side) => {
      of[t].push([TOPICS * SINGLE + d, TOPICS * SINGLE + 2 * d + side])
    })
  })
  const [x, y] = [[], []]
  for (let i = 0; i < count; i++) {
    const topic = pick(next, TOPICS)
    const [words, labels] = [new Set(), new Set()]
    for (let j = 0; j < 4; j++) words.add(topic * 10 + pick(next, 10)).add(pick(next, WORDS))
    for (let j = 0; j < 2; j++) {
      const [label, meaning] = of[topic][pick(next, of[topic].length)]
      labels.add(label)
      for (let k = 0; k < 2; k++) words.add(TOPICS * 10 + meaning * 3 + pick(next, 3))
    }
    x.push([...words].sort((a, b) => a - b))
    y.push([...labels].sort((a, b) => a - b))
  }
  return { x: matrix(x, WORDS), y: matrix(y, LABELS) }
}

const leavesOf = (node) => (Array.isArray(node[0]) ? node.flatMap(leavesOf) : [node])

function separated(tree, topics) {
  const at = Array.from({ length: LABELS }, () => new Set())
  for (const leaf of leavesOf(JSON.parse(tree.toJson()).root)) {
    const votes = new Map()
    for (const l of leaf) {
      const t = Math.floor(l / SINGLE)
      if (l < TOPICS * SINGLE) votes.set(t, (votes.get(t) ?? 0) + 1)
    }
    const [topic] = [...votes].sort((a, b) => b[1] - a[1])[0] ?? []
    for (const l of leaf) at[l].add(topic)
  }
  return topics.filter((pair, d) => pair.every((t) => at[TOPICS * SINGLE + d].has(t))).length
}

/** The plain tree with as many further slots as the overlapping one has, dealt at random. */
function dealt(next, plain, slots) {
  const json = JSON.parse(plain.toJson())
  const leaves = leavesOf(json.root)
  for (let left = slots - LABELS; left > 0; ) {
    const [leaf, label] = [leaves[pick(next, leaves.length)], pick(next, LABELS)]
    if (!leaf.includes(label)) left -= leaf.push(label) && 1
  }
  return LabelTree.fromJson(JSON.stringify(json))
}

const variants = [
  ['none', { copies: 1 }],
  ['2 copies', { copies: 2 }],
  ['2 copies, no update', { copies: 2, update: false }],
  ['2 copies, average', { copies: 2, merge: 'average' }],
  ['2 copies, max', { copies: 2, merge: 'max' }],
  ['2 copies, sum', { copies: 2, merge: 'sum' }],
  ...[3, 4, 5, 6].map((copies) => [`${copies} copies`, { copies, leafCap: copies }]),
  ['as many at random', undefined],
]
const sums = new Map()
const seeds = given.seeds.split(',').map(Number)
for (const seed of seeds) {
  const next = stream(seed)
  const topics = Array.from({ length: DOUBLE }, () => [...shuffled(next, TOPICS).slice(0, 2)])
  const [train, test] = [draw(next, topics, 20000), draw(next, topics, 5000)]
  let plain
  let slots
  for (const [name, overlap] of variants) {
    const tree = { maxLeaf: 30 }
    const options = overlap ? { tree, overlap } : { labelTree: dealt(next, plain, slots) }
    const model = await XLinear.train(train.x, train.y, options, { seed, threads: 2 })
    if (name === 'none') plain = model.tree()
    if (name === '2 copies') slots = model.info.slots
    const start = performance.now()
    const top = await model.predict(test.x, { k: 5 }, { threads: 2 })
    const ms = performance.now() - start
    const { precision } = await evaluate(top, test.y, { k: [1, 2, 5] })
    const found = [1, 2, 5].map((k) => 100 * precision[k])
    const row = [
      ...found,
      separated(model.tree(), topics),
      model.info.slots,
      model.report.seconds.total,
      ms / 5,
    ]
    const sum = sums.get(name) ?? row.map(() => 0)
    sums.set(
      name,
      sum.map((v, i) => v + row[i] / seeds.length),
    )
  }
}

const title = ['P@1', 'P@2', 'P@5', 'separated', 'slots', 'train s', 'µs a row']
const digits = [2, 2, 2, 0, 0, 2, 1]
const results = [...sums].map(([name, row]) => ({
  name,
  ...Object.fromEntries(title.map((t, i) => [t, row[i]])),
}))
const lines = [
  `| overlap | ${title.join(' | ')} |`,
  `| --- | ${title.map(() => '---:').join(' | ')} |`,
  ...[...sums].map(([name, row]) => `| ${name} | ${row.map((v, i) => v.toFixed(digits[i])).join(' | ')} |`),
]
console.log(lines.join('\n'))
const out = given.out ?? join(root, `bench/results/${today()}-overlap.json`)
writeFileSync(
  out,
  `${JSON.stringify({ machine: machine(), commit: commit(), labelsOfTwoMeanings: DOUBLE, seeds, results }, null, 2)}\n`,
)
