// Single queries in a process of its own, as the instruction set is chosen once a process:
//
//   node single.mjs MODEL ROWS.npz QUERIES ROUNDS     with AQUILA_ISA in the environment

import { readNpz, runtime, XLinear } from '../../dist/index.js'

const [path, rowsPath, queries, rounds] = process.argv.slice(2)
const model = await XLinear.open(path)
const x = await readNpz(rowsPath)
const rows = Array.from({ length: Math.min(Number(queries), x.rows) }, (_, i) => x.row(i))
const searcher = model.searcher({ k: 10, beam: 10 })

// The answers first: they warm everything up and are compared with those of other instruction sets.
const [labels, scores] = [[], []]
for (const { indices, values } of rows) {
  const count = searcher.search(indices, values)
  labels.push(...searcher.labels.subarray(0, count))
  scores.push(...searcher.scores.subarray(0, count))
}
const best = new Float64Array(rows.length).fill(Number.POSITIVE_INFINITY)
for (let round = 0; round < Number(rounds); round++)
  for (const [i, { indices, values }] of rows.entries()) {
    const start = performance.now()
    searcher.search(indices, values)
    best[i] = Math.min(best[i], performance.now() - start)
  }
best.sort()
const at = (share) => Math.round(1e6 * best[Math.min(best.length - 1, Math.floor(share * best.length))])
const result = { simd: runtime.simd().used, medianNs: at(0.5), p99Ns: at(0.99), labels, scores }
process.stdout.write(`${JSON.stringify(result)}\n`)
