// Measures of ranked predictions.

import { attempt, expected } from './errors.js'
import type { MetricParameters } from './generated/options.js'
import { run } from './job.js'
import { Csr, csrOf } from './matrix.js'
import type { Batch, Control, EvaluatorHandle, Matrix, MetricOptions } from './native/binding.cjs'
import { native } from './native.js'
import {
  both,
  type CallOptions,
  flatten,
  integer,
  isObject,
  only,
  optionsOf,
  specs,
  text,
} from './options.js'
import { Ranked } from './ranked.js'
import { uncloneable } from './sealed.js'

const EVALUATOR = Symbol('an Evaluator, which is native memory: keep it in one thread, and send it batches')

/** A measure at each k, from 0 to 1. */
export type AtK = Record<number, number>

/** The measures of an evaluation. Values are fractions, not percent. */
export interface Report {
  /** Rows that count. */
  rows: number
  /** Rows without labels: part of `rows` when they are kept, beside them when they are skipped. */
  unlabelledRows: number
  /** What was done with those. */
  unlabelled: 'keep' | 'skip'
  /** Share of the first k that are right. */
  precision: AtK
  /** Discounted gain over the best possible. */
  ndcg: AtK
  /** Share of the row's labels found. */
  recall: AtK
  /** Propensity-scored precision, a ratio of sums; only with propensities. */
  psp?: AtK
  /** Propensity-scored nDCG as the Extreme Classification Repository defines it; only with propensities. */
  psndcg?: AtK
  /** Propensity-scored nDCG as pyxclib and napkinXC compute it; only with propensities. */
  psndcgPerRow?: AtK
  /** F1 over all decisions. */
  microF1: AtK
  /** Mean over labels of their F1. */
  macroF1: AtK
  /** Mean over rows of their F1. */
  exampleF1: AtK
  /** Share of all decisions, rows × labels, that are right. */
  hammingAccuracy: AtK
}

/** Where propensities come from. */
export interface PropensitySource {
  /** The labels of the training rows: their counts make the propensities. */
  trainY: Csr
  /**
   * Name of a public data set whose published constants are wanted, instead of `a` and `b`. Names that contain "Amazon"
   * or "Wiki" have their own except for AmazonCat, Wiki10 and WikiSeeAlso; for these and the other sets of the Extreme
   * Classification Repository the defaults of `a` and `b` are the published ones. Unknown names are refused.
   */
  dataSet?: string | undefined
  /**
   * Exponent of the propensity model.
   * @defaultValue `0.55`
   */
  a?: number | undefined
  /**
   * Offset of the propensity model.
   * @defaultValue `1.5`
   */
  b?: number | undefined
}

/** What to measure. */
export interface EvaluateOptions extends Omit<MetricParameters, 'propensity'> {
  /**
   * The ranks to measure at.
   * @defaultValue `[1, 3, 5]`
   */
  k?: number | readonly number[] | undefined
  /** Adds the propensity-scored measures. */
  propensity?: PropensitySource | undefined
}

function ranks(value: unknown): number[] {
  const all = value === undefined ? [1, 3, 5] : Array.isArray(value) ? value : [value]
  if (all.length === 0) throw expected('at least one rank', 'k', value)
  // Array.from, for map leaves out the holes of an array.
  return Array.from(all, (k) => integer(k ?? null, 'k', 1, 2 ** 32 - 1, 1))
}

/** What the native library is told to measure. */
function settingsOf(options: unknown): [MetricOptions, Matrix | undefined] {
  const { k, propensity, ...params } = optionsOf(options)
  if (propensity !== undefined && !isObject(propensity)) throw expected('an object', 'propensity', propensity)
  const { trainY, dataSet, ...constants } = propensity ?? {}
  only(constants, ['a', 'b'])
  if (dataSet !== undefined && Object.values(constants).some((value) => value !== undefined))
    throw both('propensity.dataSet', 'propensity.a and propensity.b')
  const settings = {
    k: ranks(k),
    params: flatten(params, specs.metrics),
    propensity: flatten({ propensity: constants }, specs.metrics),
    ...(dataSet === undefined ? {} : { dataSet: text(dataSet, 'propensity.dataSet') }),
  }
  return [settings, propensity === undefined ? undefined : csrOf(trainY, 'propensity.trainY')]
}

function batchOf(top: unknown, y: unknown): Batch {
  if (!(top instanceof Ranked) && !(top instanceof Csr)) throw expected('a Ranked or Csr', 'top', top)
  const [ranked, scores] = top instanceof Ranked ? [top, undefined] : [undefined, csrOf(top, 'top')]
  return new native.Batch(ranked, scores, csrOf(y, 'y'))
}

/**
 * Measures predictions batch after batch, so that a test set never has to be in memory: the report is the same as
 * {@link evaluate} gives for all rows at once, whatever the batches.
 *
 * @example
 * ```ts
 * const evaluator = new Evaluator({ k: [1, 5] })
 * for (const [rows, labels] of [[x, y], [xt, yt]]) await evaluator.add(await model.predict(rows), labels)
 * const { rows, precision } = await evaluator.report()
 * console.log(rows, precision[1], precision[5])
 * evaluator.close()
 * ```
 */
export class Evaluator {
  readonly #native: EvaluatorHandle
  /** The call before: each waits for it, so that rows count in the order of the calls. */
  #last: Promise<unknown> = Promise.resolve()

  /** Measures these; `propensity.trainY` may be closed at once. The first batch says how many labels there are. */
  constructor(options?: EvaluateOptions) {
    const [settings, trainY] = settingsOf(options)
    this.#native = attempt(() => new native.EvaluatorHandle(settings, trainY))
    uncloneable(this, EVALUATOR)
  }

  /**
   * Counts the rows of a batch: predictions and truth as {@link evaluate} takes them, always over the same labels. All
   * rows count or none: a batch that is refused or cancelled leaves the evaluator as it was.
   */
  async add(top: Ranked | Csr, y: Csr, call?: CallOptions): Promise<void> {
    const start = async (control: Control) => {
      const [batch, held] = [batchOf(top, y), this.#native.hold()]
      await this.#inTurn(async () => {
        await held.add(batch, control)
        this.#native.tell()
      })
    }
    await run(call, this.add, start, true)
  }

  /** The measures of all rows whose `add` was called before; zeros where there are none. */
  async report(call?: CallOptions): Promise<Report> {
    const report = await run(call, this.report, async (control) => {
      const held = this.#native.hold()
      return this.#inTurn(() => held.report(control))
    })
    return JSON.parse(report) as Report
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }

  /** Whether the evaluator is not closed. */
  get isOpen(): boolean {
    return this.#native.isOpen
  }

  /** Lets go of the memory at once; calls that are running keep theirs. Closing twice is fine. */
  close(): void {
    this.#native.close()
  }

  /** Closes the evaluator at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}

/**
 * Measures predictions against the truth: a {@link Ranked}, or a `Csr` of scores, whose rows are ranked by falling
 * score and, among equals, by label id. A stored non-zero entry of `y` is a true label. For many batches there is
 * {@link Evaluator}.
 *
 * @example
 * ```ts
 * const top = await model.predict(xt, { k: 5 })
 * const { precision, psp } = await evaluate(top, yt, { k: [1, 3, 5], propensity: { trainY: y } })
 * ```
 */
export async function evaluate(
  top: Ranked | Csr,
  y: Csr,
  options?: EvaluateOptions,
  call?: CallOptions,
): Promise<Report> {
  const evaluator = new Evaluator(options)
  try {
    await evaluator.add(top, y, call)
    return await evaluator.report(call)
  } finally {
    evaluator.close()
  }
}
