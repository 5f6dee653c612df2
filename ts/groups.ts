// Groups of samples: labels that are known only for several inputs together.

import { AquilaError, attempt, expected } from './errors.js'
import type { AggregateParameters, ClusterParameters } from './generated/options.js'
import { run } from './job.js'
import { Csr, csrOf, type Features, featuresOf } from './matrix.js'
import { machineMemory } from './memory.js'
import type { Matrix } from './native/binding.cjs'
import { native } from './native.js'
import { both, type CallOptions, flatten, integer, only, optionsOf, specs } from './options.js'
import { SEAL, sealed } from './sealed.js'

const MOST = 2 ** 32 - 1
const MOST_GROUPS = 2 ** 28

/** What {@link Groups.random} may be told. */
export interface RandomGroupsOptions {
  /**
   * Where the random order starts.
   * @defaultValue `0`
   */
  seed?: number | undefined
}

/** What groups and their labels are like. */
export interface GroupStatistics {
  /** Groups that have samples. */
  groups: number
  /** Samples that are in a group. */
  samples: number
  /** Samples of a group, on average. */
  size: number
  /** The largest group. */
  largest: number
  /** Labels of a group, on average. */
  labelsOfGroup: number
  /** Labels that some group carries. */
  labels: number
  /** Labels that one group alone carries: nothing tells which of its samples have them. */
  loneLabels: number
  /** Labels that more than 95 % of the groups carry: hardly a group tells who lacks them. */
  commonLabels: number
  /** How much more alike samples of one group are than any: 0 in random groups, 1 in groups of equals. */
  likeness: number
}

/** How to learn from groups, and why. */
export interface GroupAdvice {
  /** For `group.method` of `XLinear.trainGroups`. */
  method: 'union' | 'eagle' | 'refine'
  /** A sentence for each reason, with its numbers. */
  reasons: string[]
  /** What the reasons rest on. */
  statistics: GroupStatistics
}

/**
 * Which samples are in which groups. A sample may be in several groups or in none.
 *
 * @example
 * ```ts
 * // Samples 0 and 1 are one page, sample 2 another; sample 3 belongs to no page.
 * const groups = Groups.from(new Int32Array([0, 0, 1, -1]))
 * console.log(groups.samples, groups.size) // 4 2
 * ```
 */
export class Groups {
  /** Samples × groups, a 1 for each membership. */
  readonly memberships: Csr

  private constructor(seal: typeof SEAL, memberships: Csr) {
    sealed(seal, 'Groups', 'Groups.from, Groups.fromMemberships, Groups.random or Groups.kmeans')
    this.memberships = memberships
  }

  /** From the group of each sample; −1 for none. Groups are numbered from 0. */
  static from(groupOfSample: Int32Array | Uint32Array): Groups {
    if (!(groupOfSample instanceof Int32Array || groupOfSample instanceof Uint32Array))
      throw expected('an Int32Array or Uint32Array', 'groupOfSample', groupOfSample)
    const rows = groupOfSample.length
    const indptr = new Uint32Array(rows + 1)
    const indices = new Uint32Array(rows)
    let [cols, n] = [0, 0]
    for (let i = 0; i < rows; i++) {
      const group = groupOfSample[i] as number
      if (group < -1)
        throw new AquilaError('INDEX_OUT_OF_RANGE', `sample ${i} has the group ${group}: expected -1 or more`)
      if (group >= MOST_GROUPS)
        throw new AquilaError(
          'INDEX_OUT_OF_RANGE',
          `sample ${i} has the group ${group}: number groups without gaps`,
        )
      if (group >= 0) {
        indices[n++] = group
        cols = Math.max(cols, group + 1)
      }
      indptr[i + 1] = n
    }
    const values = new Float32Array(n).fill(1)
    return new Groups(SEAL, Csr.from({ rows, cols, indptr, indices: indices.subarray(0, n), values }))
  }

  /** From a matrix samples × groups whose non-zero entries are memberships. */
  static fromMemberships(memberships: Csr): Groups {
    csrOf(memberships, 'memberships')
    return new Groups(SEAL, memberships)
  }

  /** Random groups of `size` samples; the last one may have fewer. */
  static random(samples: number, size: number, options?: RandomGroupsOptions): Groups {
    const given = optionsOf(options)
    only(given, ['seed'])
    const rows = integer(samples ?? null, 'samples', 0, MOST, 0)
    const of = integer(size ?? null, 'size', 1, MOST, 1)
    const seed = integer(given.seed, 'seed', 0, Number.MAX_SAFE_INTEGER, 0)
    return new Groups(SEAL, Csr.wrap(attempt(() => native.randomGroups(rows, of, seed, machineMemory()))))
  }

  /** Clusters of samples, of nearly equal size: balanced 2-means, `depth` times or down to `size`. */
  static async kmeans(x: Csr | Features, options?: ClusterParameters, call?: CallOptions): Promise<Groups> {
    const given = optionsOf(options)
    // A depth of 0 says itself that the size decides.
    if (given.size !== undefined && (given.depth ?? 0) !== 0) throw both('size', 'depth')
    const flat = flatten(given, specs.cluster)
    const rows = featuresOf(x, 'x')
    const groups = await run(call, Groups.kmeans, (control) => native.clusterGroups(rows, flat, control))
    return new Groups(SEAL, Csr.wrap(groups))
  }

  /** Number of samples, those of no group included. */
  get samples(): number {
    return this.memberships.rows
  }

  /** Number of groups. */
  get size(): number {
    return this.memberships.cols
  }

  /** The groups' labels where the samples' are known, groups × labels: for experiments. */
  async aggregate(y: Csr, options?: AggregateParameters, call?: CallOptions): Promise<Csr> {
    const flat = flatten(optionsOf(options), specs.aggregate)
    const [groups, labels] = [groupsOf(this), csrOf(y, 'y')]
    const bags = run(call, this.aggregate, (control) => native.aggregateLabels(groups, labels, flat, control))
    return Csr.wrap(await bags)
  }

  /**
   * Says how labels of these groups should be learned, and why: how large groups are, how many labels they carry, how
   * alike their samples are, and which labels they tell little about.
   *
   * @param x - Samples × features.
   * @param bags - Groups × labels.
   */
  async advise(x: Csr | Features, bags: Csr, call?: CallOptions): Promise<GroupAdvice> {
    const [rows, groups, labels] = [featuresOf(x, 'x'), groupsOf(this), csrOf(bags, 'bags')]
    const advice = run(call, this.advise, (control) => native.adviseGroups(rows, groups, labels, control))
    return (await advice) as GroupAdvice
  }

  /** Lets go of the memory at once; calls that are running keep theirs. Closing twice is fine. */
  close(): void {
    this.memberships.close()
  }

  /** Closes the groups at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}

/** The native matrix of groups. */
export function groupsOf(value: unknown): Matrix {
  if (!(value instanceof Groups)) throw expected('Groups', 'groups', value)
  return value.memberships.native
}
