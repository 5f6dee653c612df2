// Sets whose labels are words: one half of a set's features predicts the rarer ones of the other half. Any set of
// texts becomes one of thousands of labels, with all the structure of real language.

import { stream } from './random.mjs'

/** Rows of training in which a word must stand to be a label: fewer teach nothing, more are no longer one of many. */
const [LEAST, MOST] = [3, 300]

/** The columns that become labels and those that stay features, each with its new number; -1 where it is not one. */
function divide(x, seed) {
  const rowsOf = new Uint32Array(x.cols)
  for (const j of x.indices) rowsOf[j]++
  const next = stream(seed)
  const [features, labels] = [new Int32Array(x.cols).fill(-1), new Int32Array(x.cols).fill(-1)]
  let [feature, label] = [0, 0]
  for (const [j, rows] of rowsOf.entries()) {
    if (next() < 0.5) {
      if (rows > 0) features[j] = feature++
    } else if (rows >= LEAST && rows <= MOST) labels[j] = label++
  }
  return { features, labels, sizes: [feature, label] }
}

/** A growing CSR matrix. */
class Rows {
  indptr = [0]
  indices = []
  values = []

  end() {
    this.indptr.push(this.indices.length)
  }

  done(cols) {
    return {
      rows: this.indptr.length - 1,
      cols,
      indptr: Uint32Array.from(this.indptr),
      indices: Uint32Array.from(this.indices),
      values: Float32Array.from(this.values),
    }
  }
}

/** One part of the new set; rows that have no features or no labels are left out. */
function part(x, { features, labels, sizes }, most) {
  const [left, right] = [new Rows(), new Rows()]
  for (let i = 0; i < x.rows && right.indptr.length <= most; i++) {
    const span = [x.indptr[i], x.indptr[i + 1]]
    const own = x.indices.subarray(...span)
    if (!own.some((j) => features[j] >= 0) || !own.some((j) => labels[j] >= 0)) continue
    for (const [at, j] of own.entries()) {
      if (features[j] >= 0) {
        left.indices.push(features[j])
        left.values.push(x.values[span[0] + at])
      } else if (labels[j] >= 0) {
        right.indices.push(labels[j])
        right.values.push(1)
      }
    }
    left.end()
    right.end()
  }
  return { x: left.done(sizes[0]), y: right.done(sizes[1]) }
}

/**
 * The new set.
 *
 * @param trn - the features of training rows, as arrays.
 * @param tst - those of test rows; 8,000 of them suffice.
 * @param {number} seed - which half is which.
 */
export function words(trn, tst, seed) {
  const columns = divide(trn, seed)
  return { trn: part(trn, columns, Infinity), tst: part(tst, columns, 8000) }
}
