// Predictions of many rows.

import { expected } from './errors.js'
import { Csr } from './matrix.js'
import { integer, optionsOf } from './options.js'

/** The labels of one row, best first. */
export interface RankedRow {
  /** Label ids. */
  labels: Uint32Array
  /** One score for each label. */
  scores: Float32Array
}

/** Predictions: row `i` has the labels `indptr[i]` up to `indptr[i + 1]`, best first, ties by label id. */
export class Ranked {
  /** Row pointers. */
  readonly indptr: Uint32Array
  /** Label ids. */
  readonly labels: Uint32Array
  /** Scores. */
  readonly scores: Float32Array

  /** Takes the three arrays as they are: also predictions of other makers, to be evaluated. */
  constructor(arrays: { indptr: Uint32Array; labels: Uint32Array; scores: Float32Array }) {
    const { indptr, labels, scores } = optionsOf(arrays, 'the arrays')
    if (!(indptr instanceof Uint32Array)) throw expected('a Uint32Array', 'indptr', indptr)
    if (!(labels instanceof Uint32Array)) throw expected('a Uint32Array', 'labels', labels)
    if (!(scores instanceof Float32Array)) throw expected('a Float32Array', 'scores', scores)
    this.indptr = indptr
    this.labels = labels
    this.scores = scores
  }

  /** Number of rows. */
  get rows(): number {
    return Math.max(this.indptr.length - 1, 0)
  }

  /** The labels of one row, as views into the arrays. */
  row(index: number): RankedRow {
    const i = integer(index ?? null, 'row', 0, this.rows - 1, 0)
    const span = [this.indptr[i], this.indptr[i + 1]] as const
    return { labels: this.labels.subarray(...span), scores: this.scores.subarray(...span) }
  }

  /** As a sparse matrix rows × labels whose values are the scores. */
  toCsr(labels: number): Csr {
    const { indptr, labels: indices, scores: values, rows } = this
    return Csr.from({ rows, cols: labels, indptr, indices, values, unsorted: true })
  }
}
