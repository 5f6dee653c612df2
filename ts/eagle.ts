// Labels of groups, assigned to samples.

import type { AssignParameters, RefineParameters } from './generated/options.js'
import { type Groups, groupsOf } from './groups.js'
import { run } from './job.js'
import { Csr, csrOf, Dense, type Features, featuresOf } from './matrix.js'
import type { Matrix } from './native/binding.cjs'
import { native } from './native.js'
import { type CallOptions, flag, flatten, optionsOf, specs } from './options.js'

/** How {@link embed} works and what it returns. */
export interface EmbedOptions extends AssignParameters {
  /**
   * Return dense embeddings, with all their zeros: 4 bytes for each label and feature.
   * @defaultValue `false`
   */
  dense?: boolean | undefined
}

/** Embeddings of labels. */
export interface Embedded<M extends Csr | Dense = Csr> {
  /** Labels × features, each row of length 1; labels that no sample can have, have zeros only. */
  embeddings: M
  /** Seconds of the engine's work. */
  seconds: number
}

/**
 * Learns one vector over the features for each label from the groups that carry it: what those of their samples that
 * have the label have in common (GRLR, the first half of {@link assign}). Of groups of one it is the mean row of the
 * label. It serves to find labels like a sample or like each other, and as `labelVectors` of a training.
 *
 * @example
 * ```ts
 * const groups = Groups.random(x.rows, 4)
 * const bags = await groups.aggregate(y)
 * const { embeddings } = await eagle.embed(x, groups, bags)
 * const assigned = await eagle.assign(x, groups, bags)
 * const model = await XLinear.train(x, assigned.y, { labelVectors: embeddings })
 * console.log(embeddings.rows === y.cols, embeddings.cols === x.cols) // true true
 * ```
 */
export async function embed(
  x: Csr | Features,
  groups: Groups,
  bags: Csr,
  options: EmbedOptions & { dense: true },
  call?: CallOptions,
): Promise<Embedded<Dense>>
export async function embed(
  x: Csr | Features,
  groups: Groups,
  bags: Csr,
  options?: EmbedOptions & { dense?: false | undefined },
  call?: CallOptions,
): Promise<Embedded>
export async function embed(
  x: Csr | Features,
  groups: Groups,
  bags: Csr,
  options?: EmbedOptions,
  call?: CallOptions,
): Promise<Embedded<Csr | Dense>>
export async function embed(
  x: Csr | Features,
  groups: Groups,
  bags: Csr,
  options?: EmbedOptions,
  call?: CallOptions,
): Promise<Embedded<Csr | Dense>> {
  const { dense: wanted, ...rest } = optionsOf(options)
  const dense = flag(wanted, 'dense', false)
  const flat = flatten(rest, specs.assign)
  const [rows, of, labels] = [featuresOf(x, 'x'), groupsOf(groups), csrOf(bags, 'bags')]
  const found = await run(call, embed, (control) =>
    native.embedLabels(rows, of, labels, flat, dense, control),
  )
  const embeddings = found.dense ? Dense.wrap(found.dense) : Csr.wrap(found.sparse as Matrix)
  return { embeddings, seconds: found.seconds }
}

/** How {@link assign} works and what it returns. */
export interface AssignOptions extends AssignParameters {
  /**
   * Return the labels' embeddings too: the same that {@link embed} learns, without learning them twice.
   * @defaultValue `false`
   */
  embeddings?: boolean | undefined
}

/** Labels of samples. */
export interface Assigned {
  /** Samples × labels: how similar each sample is to each label it was given. */
  y: Csr
  /** Labels × features, each row of length 1, where they were asked for. */
  embeddings?: Csr
  /** Seconds of the engine's work. */
  seconds: number
}

/**
 * EAGLE: gives each label of each group to the one sample of the group that is most like the label elsewhere.
 *
 * @example
 * ```ts
 * // Two pages of two paragraphs; both have tag 0, and what they share is word 0.
 * const x = Csr.from({
 *   rows: 4,
 *   cols: 3,
 *   indptr: new Uint32Array([0, 1, 2, 3, 4]),
 *   indices: new Uint32Array([0, 1, 2, 0]),
 *   values: new Float32Array([1, 1, 1, 1]),
 * })
 * const groups = Groups.from(new Int32Array([0, 0, 1, 1]))
 * const bags = Csr.from({
 *   rows: 2,
 *   cols: 1,
 *   indptr: new Uint32Array([0, 1, 2]),
 *   indices: new Uint32Array([0, 0]),
 *   values: new Float32Array([1, 1]),
 * })
 * const { y } = await eagle.assign(x, groups, bags)
 * console.log(y.toArrays().indptr) // Uint32Array(5) [ 0, 1, 1, 1, 2 ]
 * ```
 */
export async function assign(
  x: Csr | Features,
  groups: Groups,
  bags: Csr,
  options?: AssignOptions,
  call?: CallOptions,
): Promise<Assigned> {
  const { embeddings: wanted, ...rest } = optionsOf(options)
  const embeddings = flag(wanted, 'embeddings', false)
  const flat = flatten(rest, specs.assign)
  const [rows, of, labels] = [featuresOf(x, 'x'), groupsOf(groups), csrOf(bags, 'bags')]
  const found = await run(call, assign, (control) =>
    native.assignLabels(rows, of, labels, flat, embeddings, control),
  )
  return {
    y: Csr.wrap(found.y),
    ...(found.embeddings && { embeddings: Csr.wrap(found.embeddings) }),
    seconds: found.seconds,
  }
}

/** Labels of samples with their confidence. */
export interface Refined {
  /** Samples × labels: how sure each label is, above 0 and at most 1. */
  y: Csr
  /** What each of these labels weighs in a training, the `relevance` of `XLinear.train`: less where it is less sure. */
  relevance: Csr
  /**
   * For `solver` of that training, which learns labels with the more caution the less sure they are. With these and
   * `relevance` it learns what `XLinear.trainGroups` learns at once, but for samples of no group: those have no labels
   * here, and are left out there.
   */
  solver: {
    /** Relevances weigh labels at their leaves, and not on the way there. */
    relevance: 'leaves'
    /** The cost of a positive. */
    cp: number
    /** The cost of a negative. */
    cn: number
  }
  /** How much more alike samples of one group are than samples of all: 0 in random groups, 1 in groups of equals. */
  likeness: number
  /** The least probability that made a label: less than asked for where samples of a group are alike. */
  threshold: number
  /** Seconds of the engine's work. */
  seconds: number
}

/**
 * Labels of samples from labels of groups, far closer to the truth than {@link assign}: rankers learn from groups'
 * means and then from their own labels, always judged on groups that they have not seen, and every group says that
 * each of its labels belongs to at least one of its samples.
 *
 * Bags with counts above 1 (`aggregate` makes them) tell how often a label is to be given; bags of ones do not.
 * `XLinear.trainGroups` goes from groups to a model at once; in two steps the labels may be looked at on the way:
 *
 * @example
 * ```ts
 * const groups = Groups.random(x.rows, 4)
 * const { y: found, relevance, solver } = await eagle.refine(x, groups, await groups.aggregate(y))
 * const model = await XLinear.train(x, found, { relevance, solver })
 * console.log(model.info.labels === y.cols) // true
 * ```
 */
export async function refine(
  x: Csr | Features,
  groups: Groups,
  bags: Csr,
  options?: RefineParameters,
  call?: CallOptions,
): Promise<Refined> {
  const flat = flatten(optionsOf(options), specs.refine)
  const [rows, of, labels] = [featuresOf(x, 'x'), groupsOf(groups), csrOf(bags, 'bags')]
  const found = await run(call, refine, (control) => native.refineLabels(rows, of, labels, flat, control))
  const { cp, cn, ...rest } = found
  const solver = { relevance: 'leaves', cp, cn } as const
  return { ...rest, y: Csr.wrap(found.y), relevance: Csr.wrap(found.relevance), solver }
}

/** The baseline: gives every sample all labels of its groups. */
export async function union(groups: Groups, bags: Csr, call?: CallOptions): Promise<Csr> {
  const [of, labels] = [groupsOf(groups), csrOf(bags, 'bags')]
  return Csr.wrap(await run(call, union, (control) => native.unionLabels(of, labels, control)))
}
