// The demonstration: invents a library's catalogue, learns its labels, measures and shows what was learned.
//
//   node examples/demo.mjs [--rows 30000] [--seed 1] [--threads 0] [--out demo-out]

import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { evaluate, Ranked, runtime, XLinear } from 'aquila-xmc'
import { catalogue, labelMatrix, tfidf } from './lib/catalogue.mjs'

const { values: given } = parseArgs({
  options: {
    rows: { type: 'string', default: '30000' },
    seed: { type: 'string', default: '1' },
    threads: { type: 'string', default: '0' },
    out: { type: 'string', default: 'demo-out' },
  },
})
const [rows, seed, threads] = [given.rows, given.seed, given.threads].map(Number)
if (![rows, seed, threads].every((n) => Number.isInteger(n) && n >= 0) || rows < 100) {
  console.error('rows must be an integer of at least 100, seed and threads integers of at least 0')
  process.exit(2)
}

// Colours and a moving bar are for terminals alone.
const terminal = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
const paint = (code) => (text) => (terminal ? `\x1b[${code}m${text}\x1b[0m` : text)
const [bold, dim, green, cyan] = [1, 2, 32, 36].map(paint)
const print = (text = '') => process.stdout.write(`${text}\n`)
const title = (text) => print(`\n${bold(text)}`)
const fact = (name, text) => print(`  ${dim(name.padEnd(12))} ${text}`)
const count = (n) => n.toLocaleString('en')
const percent = (x) => `${(100 * x).toFixed(1)} %`

function bar({ stage, done, total, eta }) {
  if (!terminal) return
  const share = total > 0 ? done / total : 1
  const full = Math.round(share * 30)
  const left = eta === undefined || share === 1 ? '' : dim(`  ${Math.ceil(eta)} s left`)
  const name = { labelVectors: 'label vectors', layers: 'classifiers' }[stage] ?? stage
  process.stdout.write(
    `\r\x1b[K  ${dim(name.padEnd(14))}${green('━'.repeat(full))}${dim('─'.repeat(30 - full))} ${percent(share)}${left}`,
  )
}

async function seconds(work) {
  const start = performance.now()
  const result = await work()
  return [result, (performance.now() - start) / 1000]
}

print(bold(`Aquila ${runtime.versions().aquila}`))
print(
  dim(
    `node ${runtime.versions().node}, ${threads || runtime.threads()} threads, ${runtime.simd().used} kernels`,
  ),
)

title("1  A library's catalogue, invented")
const data = catalogue({ rows, testRows: Math.max(100, Math.round(rows / 10)), seed })
const { train, test, words, labelNames } = data
const features = tfidf(train, words.length)
const [x, xTest] = [features(train), features(test)]
const [y, yTest] = [train, test].map((records) => labelMatrix(records, labelNames.length))
fact('records', `${count(rows)} to learn from, ${count(test.length)} more to be asked about`)
fact('words', `${count(words.length)} different ones, ${(x.nnz / rows).toFixed(0)} in a record`)
fact(
  'labels',
  `${count(labelNames.length)} = ${data.topics} topics x ${data.sides} sides, e.g. ${labelNames[0]}`,
)
fact('', `${(y.nnz / rows).toFixed(1)} right ones for a record, to be found among all`)

title('2  Training')
const model = await XLinear.train(
  x,
  y,
  { labelNames, metadata: { words } },
  { seed, threads, onProgress: bar },
)
if (terminal) process.stdout.write('\r\x1b[K')
const { seconds: took } = model.report
fact('tree', `${model.info.layers.join(' > ')} columns, from the root to the labels`)
fact('classifiers', `${count(model.info.weights)} weights`)
fact(
  'time',
  `${took.total.toFixed(2)} s: tree ${(took.labelVectors + took.tree).toFixed(2)}, classifiers ${took.layers.toFixed(2)}, layout ${took.layout.toFixed(2)}`,
)

title('3  Quality on the records it has not seen')
const [top, batch] = await seconds(() => model.predict(xTest, { k: 5, beam: 10 }, { threads }))
const ours = await evaluate(top, yTest)

// The baseline: for every record the labels that are most frequent in training.
const counts = new Uint32Array(labelNames.length)
for (const { labels } of train) for (const label of labels) counts[label]++
const frequent = [...counts.keys()].sort((a, b) => counts[b] - counts[a] || a - b).slice(0, 5)
const popular = new Ranked({
  indptr: Uint32Array.from({ length: test.length + 1 }, (_, i) => 5 * i),
  labels: Uint32Array.from({ length: 5 * test.length }, (_, i) => frequent[i % 5]),
  scores: Float32Array.from({ length: 5 * test.length }, (_, i) => counts[frequent[i % 5]] / rows),
})
const baseline = await evaluate(popular, yTest)
// No list of five can be all right where a record has fewer labels.
const ideal = (k) => test.reduce((sum, { labels }) => sum + Math.min(k, labels.length) / k, 0) / test.length
const row = (name, at) => `  ${name.padEnd(26)}${[1, 3, 5].map((k) => percent(at(k)).padStart(10)).join('')}`
print(dim(`  ${''.padEnd(26)}${['P@1', 'P@3', 'P@5'].map((head) => head.padStart(10)).join('')}`))
print(row('the most frequent labels', (k) => baseline.precision[k]))
print(green(row('Aquila', (k) => ours.precision[k])))
print(dim(row('the best possible', ideal)))

title('4  Three of these records: + marks a right label')
for (const i of [0, 1, 2]) {
  const { words: own, labels } = test[i]
  if (i > 0) print()
  fact(
    'words',
    [...new Set(own)]
      .slice(0, 14)
      .map((word) => words[word])
      .join(' ') + dim(' …'),
  )
  fact('truth', labels.map((label) => labelNames[label]).join(dim(' | ')))
  const found = top.row(i)
  for (const [rank, label] of [...found.labels].entries()) {
    const right = labels.includes(label)
    const score = found.scores[rank].toFixed(2)
    const text = `${right ? '+' : ' '} ${score}  ${model.labelName(label)}`
    fact(rank === 0 ? 'found' : '', right ? cyan(text) : dim(text))
  }
}

title('5  Speed and size')
const searcher = model.searcher({ k: 5, beam: 10 })
const queries = Array.from({ length: Math.min(1000, test.length) }, (_, i) => xTest.row(i))
for (const { indices, values } of queries) searcher.search(indices, values)
const times = Float64Array.from(queries, ({ indices, values }) => {
  const start = performance.now()
  searcher.search(indices, values)
  return 1000 * (performance.now() - start)
}).sort()
const at = (share) => times[Math.floor(share * times.length)].toFixed(1)
fact(
  'one by one',
  `${at(0.5)} µs a record (median of ${count(times.length)} calls from JavaScript; p99 ${at(0.99)} µs)`,
)
fact(
  'in a batch',
  `${((1e6 * batch) / test.length).toFixed(1)} µs a record (${count(test.length)} records, ${threads || runtime.threads()} threads)`,
)
mkdirSync(given.out, { recursive: true })
const file = join(given.out, 'catalogue.aquila')
await model.save(file)
const [again, opening] = await seconds(() => XLinear.open(file))
fact(
  'model file',
  `${(statSync(file).size / 1e6).toFixed(2)} MB in ${file}, opens in ${(1000 * opening).toFixed(1)} ms`,
)
again.close()
model.close()
print(dim(`\nNext: node dist/cli/main.js inspect ${file}`))
