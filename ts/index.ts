/**
 * Extreme multi-label classification for Node.js: finds the few right labels of an input among thousands or millions.
 *
 * Heavy calls return promises and never hold the event loop; what goes wrong is an {@link AquilaError}. A running call
 * keeps the process alive until its promise settles; a progress listener alone does not. Arrays are copied before a call
 * returns, so they may be changed or transferred at once.
 *
 * @packageDocumentation
 */

export * as eagle from './eagle.js'
export { AquilaError, type ErrorCode } from './errors.js'
export type * from './generated/options.js'
export { type GroupAdvice, type GroupStatistics, Groups, type RandomGroupsOptions } from './groups.js'
export {
  type Dataset,
  type LibsvmOptions,
  type PathLike,
  readLibsvm,
  readNpy,
  readNpz,
  readXmc,
  type WriteLibsvmOptions,
  type WriteNpzOptions,
  writeLibsvm,
  writeNpy,
  writeNpz,
  writeXmc,
} from './io.js'
export {
  Csr,
  type CsrArrays,
  type CsrInput,
  Dense,
  type DenseInput,
  type FeatureRow,
  Features,
  type SparseRow,
} from './matrix.js'
export type { Leaf, Meanings, MeaningsOptions, Telling } from './meanings.js'
export {
  type AtK,
  type EvaluateOptions,
  Evaluator,
  evaluate,
  type PropensitySource,
  type Report,
} from './metrics.js'
export type { CallOptions, OptionValue, Progress, Stage } from './options.js'
export { Ranked, type RankedRow } from './ranked.js'
export type { RowInput } from './rows.js'
export * as runtime from './runtime.js'
export type { Searcher } from './searcher.js'
export { LabelTree } from './tree.js'
export {
  forecast,
  type ModelInfo,
  type OpenOptions,
  type PredictOptions,
  type SearchOptions,
  type TrainGroupsOptions,
  type TrainOptions,
  type TrainReport,
  type TrainSeconds,
  trainGroupsParameters,
  trainParameters,
  XLinear,
} from './xlinear.js'
