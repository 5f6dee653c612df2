// Samples and labels by the million, quickly: for time and memory, not for quality.
//
// Every label has words of its own, drawn anywhere; a sample takes a few labels by popularity, half of its words from
// theirs and the rest from a background that all samples share.
//
//   node crowd.mjs FOLDER SAMPLES LABELS [SEED]     writes X.npz and Y.npz, in a process of its own

import { join } from 'node:path'
import { pick, stream, zipf } from './random.mjs'

/** Features in all, and of a sample before repeated ones are joined. */
const FEATURES = 200_000
const WORDS = 48
/** Words of a label. */
const OWN = 12
/** Labels of a sample: 1 to this, each as often. */
const LABELS = 5

/**
 * The set, as `Csr.from` takes it.
 *
 * @param {{ samples: number, labels: number, seed?: number }} sizes
 */
export function crowd({ samples, labels, seed = 0 }) {
  const next = stream(seed)
  const own = Uint32Array.from({ length: labels * OWN }, () => pick(next, FEATURES))
  const [popular, common] = [zipf(labels, 50, 0.8), zipf(FEATURES, 20, 1)]
  const x = { indptr: new Uint32Array(samples + 1), indices: new Uint32Array(samples * WORDS) }
  const y = { indptr: new Uint32Array(samples + 1), indices: new Uint32Array(samples * LABELS) }
  const values = new Float32Array(samples * WORDS)
  const [words, ids] = [new Uint32Array(WORDS), new Uint32Array(LABELS)]
  /** Appends ids in order, each once; says how many. */
  const append = (to, from, some) => {
    const sorted = some.sort()
    let at = from
    for (const [n, id] of sorted.entries()) if (n === 0 || id !== sorted[n - 1]) to[at++] = id
    return at
  }
  for (let i = 0; i < samples; i++) {
    const count = 1 + pick(next, LABELS)
    for (let n = 0; n < count; n++) ids[n] = popular(next)
    for (let n = 0; n < WORDS; n++)
      words[n] = next() < 0.5 ? own[ids[pick(next, count)] * OWN + pick(next, OWN)] : common(next)
    y.indptr[i + 1] = append(y.indices, y.indptr[i], ids.subarray(0, count))
    const [begin, end] = [x.indptr[i], append(x.indices, x.indptr[i], words)]
    x.indptr[i + 1] = end
    values.fill(1 / Math.sqrt(end - begin), begin, end)
  }
  const matrix = ({ indptr, indices }, cols, values) => {
    const used = indices.subarray(0, indptr[samples])
    return {
      rows: samples,
      cols,
      indptr,
      indices: used,
      values: values ?? new Float32Array(used.length).fill(1),
    }
  }
  return {
    x: matrix(x, FEATURES, values.subarray(0, x.indptr[samples])),
    y: matrix(y, labels),
  }
}

if (process.argv[1] === import.meta.filename) {
  const { Csr, writeNpz } = await import('../../dist/index.js')
  const [folder, samples, labels, seed] = process.argv.slice(2)
  const set = crowd({ samples: Number(samples), labels: Number(labels), seed: Number(seed ?? 0) })
  const plain = { compressed: false }
  await writeNpz(join(folder, 'X.npz'), Csr.from(set.x), plain)
  await writeNpz(join(folder, 'Y.npz'), Csr.from(set.y), plain)
}
