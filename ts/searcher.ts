// One query after another, without garbage.

import { expected, translate } from './errors.js'

/** The native side of a searcher. */
interface Native {
  search(indices: Uint32Array, values: Float32Array, dense?: Float32Array): number
  labels: Uint32Array
  scores: Float32Array
}

/**
 * A warm searcher of a model, made by {@link XLinear.searcher}: each answer goes into the same two arrays.
 *
 * @example
 * ```ts
 * const searcher = model.searcher({ k: 5, beam: 10 })
 * const count = searcher.search(row.indices, row.values)
 * for (let i = 0; i < count; i++) console.log(searcher.labels[i], searcher.scores[i])
 * ```
 */
export class Searcher {
  /** Labels of the last query, best first; as many as `search` returned are valid. */
  readonly labels: Uint32Array
  /** Scores of the last query's labels. */
  readonly scores: Float32Array
  readonly #search: Native['search']

  private constructor(made: Native) {
    this.labels = made.labels
    this.scores = made.scores
    this.#search = made.search
  }

  /** @internal */
  static wrap(made: Native): Searcher {
    return new Searcher(made)
  }

  /**
   * Looks up one row, given as strictly ascending feature ids with finite values, on the calling thread. Returns how
   * many labels were found; they stand in `labels` and `scores` until the next search. A model with a dense block wants
   * the row's values in it too.
   */
  search(indices: Uint32Array, values: Float32Array, dense?: Float32Array): number {
    try {
      return this.#search(indices, values, dense)
    } catch (error) {
      if (!(indices instanceof Uint32Array)) throw expected('a Uint32Array', 'indices', indices)
      if (!(values instanceof Float32Array)) throw expected('a Float32Array', 'values', values)
      if (dense !== undefined && !(dense instanceof Float32Array))
        throw expected('a Float32Array', 'dense', dense)
      throw translate(error)
    }
  }
}
