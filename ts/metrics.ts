// Measures of ranked predictions.

import { AquilaError, expected } from './errors.js'
import type { MetricParameters } from './generated/options.js'
import { run } from './job.js'
import { Csr, csrOf } from './matrix.js'
import { native } from './native.js'
import { type CallOptions, flatten, integer, isObject, only, optionsOf, specs, text } from './options.js'
import { Ranked } from './ranked.js'

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
   * Name of a public data set whose published constants are wanted, instead of `a` and `b`. Wikipedia and Amazon data
   * sets have their own; for all others the defaults of `a` and `b` are the published ones.
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

/**
 * Measures predictions against the truth: a {@link Ranked}, or a `Csr` of scores, whose rows are ranked by falling
 * score and, among equals, by label id. A stored non-zero entry of `y` is a true label.
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
  const report = await run(call, evaluate, (control) => {
    if (!(top instanceof Ranked) && !(top instanceof Csr)) throw expected('a Ranked or Csr', 'top', top)
    const { k, propensity, ...params } = optionsOf(options)
    if (propensity !== undefined && !isObject(propensity))
      throw expected('an object', 'propensity', propensity)
    const { trainY, dataSet, ...constants } = propensity ?? {}
    only(constants, ['a', 'b'])
    if (dataSet !== undefined && Object.values(constants).some((value) => value !== undefined))
      throw new AquilaError(
        'INVALID_ARGUMENT',
        'Expected either propensity.dataSet or propensity.a and propensity.b but received both',
      )
    const settings = {
      k: ranks(k),
      params: flatten(params, specs.metrics),
      propensity: flatten({ propensity: constants }, specs.metrics),
      ...(dataSet === undefined ? {} : { dataSet: text(dataSet, 'propensity.dataSet') }),
    }
    const [ranked, scores] = top instanceof Ranked ? [top, undefined] : [undefined, csrOf(top, 'top')]
    const counts = propensity === undefined ? undefined : csrOf(trainY, 'propensity.trainY')
    return native.evaluate(ranked, scores, csrOf(y, 'y'), settings, counts, control)
  })
  return JSON.parse(report) as Report
}
