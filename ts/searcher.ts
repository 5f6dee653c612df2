// One query after another on the calling thread.

import { AquilaError, attempt, expected, translate } from './errors.js'
import type { ModelHandle } from './native/binding.cjs'
import { native } from './native.js'
import { flatten, specs } from './options.js'
import { SEAL, sealed, uncloneable } from './sealed.js'

const SEARCHER = Symbol(
  'a Searcher of native memory: open the model and make one in the other thread instead',
)

/** The native search function of a model, which takes settings as numbers in front of the place for its answer. */
export type Lookup = ReturnType<ModelHandle['lookup']>

/** The place of each parameter among the numbers that stand for them, and what it takes. */
const PLACES = new Map(specs.predict.map((spec, place) => [spec.name, { ...spec, place }]))
const DEFAULTS = native.searchSettings({})

/** The number that stands for a value; `undefined` where the value is none that the parameter takes. */
function numberOf(name: string, value: unknown): number | undefined {
  const spec = PLACES.get(name)
  if (typeof value === 'string') {
    const choice = spec?.choices?.indexOf(value)
    return choice === -1 ? undefined : choice
  }
  if (typeof value !== 'number' || spec?.min === undefined || spec.max === undefined) return undefined
  if (spec.kind === 'integer' && !Number.isInteger(value)) return undefined
  return value >= spec.min && value <= spec.max ? value : undefined
}

/** The settings of a query and the place for its answer: one piece of memory, for each further one takes time. */
export class Answer {
  /** The numbers that stand for the parameters. */
  readonly settings: Float64Array
  /** Everything. */
  readonly all: Uint32Array
  readonly labels: Uint32Array
  readonly scores: Float32Array

  /** With room for so many labels. */
  constructor(room: number, settings: Float64Array = DEFAULTS) {
    const front = settings.byteLength
    const buffer = new ArrayBuffer(front + 8 * room)
    this.settings = new Float64Array(buffer, 0, settings.length)
    this.settings.set(settings)
    this.all = new Uint32Array(buffer)
    this.labels = new Uint32Array(buffer, front, room)
    this.scores = new Float32Array(buffer, front + 4 * room, room)
  }
}

/** Writes the parameters among these options into `settings`; refuses what prediction would refuse. */
export function readSettings(options: Record<string, unknown>, settings: Float64Array): void {
  settings.set(DEFAULTS)
  for (const name of Object.keys(options)) {
    const value = options[name]
    if (value === undefined || name === 'allowed') continue
    const number = numberOf(name, value)
    if (number === undefined) {
      // What is out of the ordinary is for the engine to judge.
      const { allowed: _, ...parameters } = options
      const flat = flatten(parameters, specs.predict)
      settings.set(attempt(() => native.searchSettings(flat)))
      return
    }
    settings[PLACES.get(name)?.place as number] = number
  }
}

/** How many labels such a search returns at most, of so many. */
export function most(settings: Float64Array, labels: number): number {
  return Math.min(settings[PLACES.get('k')?.place as number] as number, Math.max(labels, 1))
}

/** The error of a search whose row is of wrong types, or the native library's. */
function refusal(error: unknown, indices: unknown, values: unknown, dense: unknown): unknown {
  if (!(indices instanceof Uint32Array)) return expected('a Uint32Array', 'indices', indices)
  if (!(values instanceof Float32Array)) return expected('a Float32Array', 'values', values)
  if (dense !== undefined && !(dense instanceof Float32Array))
    return expected('a Float32Array', 'dense', dense)
  return translate(error)
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
  readonly #answer: Answer
  #lookup: Lookup | undefined
  #narrowing: { close(): void } | undefined

  private constructor(
    seal: typeof SEAL,
    lookup: Lookup,
    answer: Answer,
    narrowing: { close(): void } | undefined,
  ) {
    sealed(seal, 'Searcher', 'the searcher() of a model')
    this.labels = answer.labels
    this.scores = answer.scores
    this.#answer = answer
    this.#lookup = lookup
    this.#narrowing = narrowing
    uncloneable(this, SEARCHER)
  }

  /** @internal */
  static wrap(lookup: Lookup, answer: Answer, narrowing?: { close(): void }): Searcher {
    return new Searcher(SEAL, lookup, answer, narrowing)
  }

  /**
   * Looks up one row, given as strictly ascending feature ids with finite values, on the calling thread. Returns how
   * many labels were found; they are in `labels` and `scores` until the next search. A model with a dense block wants
   * the row's values in it too.
   */
  search(indices: Uint32Array, values: Float32Array, dense?: Float32Array): number {
    const lookup = this.#lookup
    if (lookup === undefined) throw new AquilaError('CLOSED', 'the searcher is closed')
    try {
      return dense === undefined
        ? lookup(indices, values, this.#answer.all)
        : lookup(indices, values, this.#answer.all, dense)
    } catch (error) {
      throw refusal(error, indices, values, dense)
    }
  }

  /**
   * Lets go of the model and of the allowed labels at once: later searches are `CLOSED` errors, while `labels` and
   * `scores` stay. Closing twice is fine.
   */
  close(): void {
    this.#lookup = undefined
    this.#narrowing?.close()
    this.#narrowing = undefined
  }

  /** Closes the searcher at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}
