// One query after another, without garbage.

import { expected, translate } from './errors.js'
import { SEAL, sealed, uncloneable } from './sealed.js'

const SEARCHER = Symbol(
  'a Searcher of native memory: open the model and make one in the other thread instead',
)

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

  private constructor(seal: typeof SEAL, made: Native) {
    sealed(seal, 'Searcher', 'the searcher() of a model')
    this.labels = made.labels
    this.scores = made.scores
    this.#search = made.search
    uncloneable(this, SEARCHER)
  }

  /** @internal */
  static wrap(made: Native): Searcher {
    return new Searcher(SEAL, made)
  }

  /**
   * Looks up one row, given as strictly ascending feature ids with finite values, on the calling thread. Returns how
   * many labels were found; they are in `labels` and `scores` until the next search. A model with a dense block wants
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

/** The options of a searcher, compared by each name and value: a text of them would lose some and is garbage. */
interface Kept {
  names: readonly string[]
  options: Readonly<Record<string, unknown>>
  searcher: Searcher
}

function same({ names, options }: Kept, given: Record<string, unknown>): boolean {
  const own = Object.keys(given)
  if (own.length !== names.length) return false
  for (const name of own) if (!Object.hasOwn(options, name) || options[name] !== given[name]) return false
  return true
}

/**
 * The searchers of the last few settings. A service uses one or two; whoever varies them endlessly must not fill the
 * memory.
 */
export class RecentSearchers {
  #kept: Kept[] = []

  /** The searcher that was made with these options. */
  find(given: Record<string, unknown>): Searcher | undefined {
    for (const kept of this.#kept) if (same(kept, given)) return kept.searcher
    return undefined
  }

  /** Keeps a searcher and returns it. What its options hold may change where it is no plain value: then it is not kept. */
  keep(given: Record<string, unknown>, searcher: Searcher): Searcher {
    if (Object.values(given).some((value) => typeof value === 'object')) return searcher
    if (this.#kept.length >= 8) this.#kept = []
    this.#kept.push({ names: Object.keys(given), options: { ...given }, searcher })
    return searcher
  }

  /** Forgets them all. */
  clear(): void {
    this.#kept = []
  }
}
