// Labels put together from several: what a label of many meanings is, made from any data set. Labels are clustered, those
// of each cluster shuffled, and `k` that follow each other there become one: the larger the clusters, the more unlike.

import { leavesOf } from './homonyms.mjs'
import { shuffled } from './random.mjs'

/** How unlike the labels are that become one, as in the paper: of clusters of k, of 32 k, of all labels. */
export const MODES = ['easy', 'medium', 'hard']

/** How many fused labels a cluster of the medium mode makes. */
const CLUSTER = 32

/** Label vectors for clusters: the mean rows of labels. */
export async function vectorsOf({ Groups, eagle }, x, y, call) {
  const each = Groups.from(Int32Array.from({ length: x.rows }, (_, row) => row))
  // Without rounds a label's embedding is the mean of its rows.
  const { embeddings } = await eagle.embed(x, each, y, { iterations: 0 }, call)
  each.close()
  return embeddings
}

/** Balanced clusters of at most so many labels, by mode: the leaves of a tree of two layers, whose model is no matter. */
async function clusters({ Csr, XLinear }, vectors, mode, k, call) {
  const labels = vectors.rows
  const size = { easy: k, medium: CLUSTER * k, hard: labels }[mode]
  if (size === undefined) throw new Error(`Expected a mode of ${MODES.join(', ')} but received ${mode}`)
  if (size >= labels) return [Array.from({ length: labels }, (_, label) => label)]
  const all = Array.from({ length: labels }, (_, label) => label)
  const [x, y] = [labelsOf(Csr, [[0]], 1), labelsOf(Csr, [all], labels)]
  const tree = { maxLeaf: size, arity: Math.ceil(labels / size) }
  const model = await XLinear.train(x, y, { labelVectors: vectors, tree }, call)
  const { root } = JSON.parse(model.tree().toJson())
  model.close()
  return leavesOf(root)
}

/** For each label the one that it becomes a part of. */
export async function fuse(library, vectors, mode, k, next, call) {
  const to = new Uint32Array(vectors.rows)
  let fused = 0
  for (const cluster of await clusters(library, vectors, mode, k, call)) {
    for (const [place, i] of shuffled(next, cluster.length).entries())
      to[cluster[i]] = fused + Math.floor(place / k)
    fused += Math.ceil(cluster.length / k)
  }
  return to
}

/** Labels of rows after fusing; a row has each at most once. */
export function fused(Csr, y, to) {
  const { indptr, indices, values } = y.toArrays()
  const cols = Math.max(...to) + 1
  const rows = Array.from({ length: y.rows }, (_, i) => {
    const own = new Set()
    for (let at = indptr[i]; at < indptr[i + 1]; at++) if (values[at] !== 0) own.add(to[indices[at]])
    return [...own].sort((a, b) => a - b)
  })
  return labelsOf(Csr, rows, cols)
}

/** A matrix of ones from the ascending columns of each row. */
export function labelsOf(Csr, rows, cols) {
  const indptr = new Uint32Array(rows.length + 1)
  rows.forEach((row, i) => {
    indptr[i + 1] = indptr[i] + row.length
  })
  const indices = Uint32Array.from(rows.flat())
  return Csr.from({
    rows: rows.length,
    cols,
    indptr,
    indices,
    values: new Float32Array(indices.length).fill(1),
  })
}
