// Label trees, exchanged as JSON or as a chain of matrices.

import { attempt, expected } from './errors.js'
import { Csr, csrOf } from './matrix.js'
import type { TreeHandle } from './native/binding.cjs'
import { native } from './native.js'
import { text } from './options.js'
import { SEAL, sealed, uncloneable } from './sealed.js'

const TREE = Symbol('a LabelTree, which is native memory: send its toJson() instead')

/**
 * A label tree: its leaves are slots that point to labels; a label may have several slots, and slots may be placed at
 * different depths.
 *
 * @example
 * ```ts
 * // Two leaves: labels 0 and 1 under the first, 1 and 2 under the second.
 * const tree = LabelTree.fromJson('{ "aquilaTree": 1, "labels": 3, "root": [[0, 1], [1, 2]] }')
 * console.log(tree.labels, tree.slots, tree.layers) // 3 4 [ 2, 4 ]
 * ```
 */
export class LabelTree {
  /** @internal */
  readonly native: TreeHandle

  private constructor(seal: typeof SEAL, tree: TreeHandle) {
    sealed(seal, 'LabelTree', 'LabelTree.fromJson, LabelTree.fromChain or the tree() of a model')
    this.native = tree
    uncloneable(this, TREE)
  }

  /** @internal */
  static wrap(tree: TreeHandle): LabelTree {
    return new LabelTree(SEAL, tree)
  }

  /**
   * Reads `{"aquilaTree": 1, "labels": n, "root": […]}`: a node is the list of its children, each a node or a label.
   * A text that is no such JSON is a `PARSE` error, a tree that misses a label a `BAD_TREE` error.
   */
  static fromJson(json: string): LabelTree {
    const source = text(json, 'json')
    return new LabelTree(
      SEAL,
      attempt(() => native.TreeHandle.fromJson(source)),
    )
  }

  /** The JSON text that {@link LabelTree.fromJson} reads. */
  toJson(): string {
    return attempt(() => this.native.toJson())
  }

  /**
   * Reads a chain of matrices, the form of PECOS's cluster chains: matrix `t` is children × parents, with an entry where
   * the child is placed under the parent; the first has one column, the root, and the last a row for each label. Anything
   * that is no tree over all labels is a `BAD_TREE` error.
   *
   * @example
   * ```ts
   * const chain = LabelTree.fromJson('{ "aquilaTree": 1, "labels": 3, "root": [[0, 1], [1, 2]] }').toChain()
   * console.log(chain.map(({ rows, cols }) => `${rows} × ${cols}`)) // [ '2 × 1', '3 × 2' ]
   * console.log(LabelTree.fromChain(chain).layers) // [ 2, 4 ]
   * ```
   */
  static fromChain(chain: readonly Csr[]): LabelTree {
    if (!Array.isArray(chain)) throw expected('an array of Csr', 'chain', chain)
    const matrices = Array.from(chain, (matrix, t) => csrOf(matrix, `chain[${t}]`))
    return new LabelTree(
      SEAL,
      attempt(() => native.TreeHandle.fromChain(matrices)),
    )
  }

  /**
   * The chain of matrices that {@link LabelTree.fromChain} reads. A chain has all labels in its last layer: labels that
   * are placed higher are padded down to it.
   */
  toChain(): Csr[] {
    return attempt(() => this.native.toChain()).map((matrix) => Csr.wrap(matrix))
  }

  /** Number of labels. */
  get labels(): number {
    return attempt(() => this.native.labels)
  }

  /** Number of slots, at least one a label. */
  get slots(): number {
    return attempt(() => this.native.slots)
  }

  /** Columns of each layer, root first. */
  get layers(): number[] {
    return attempt(() => this.native.layers)
  }

  /** Whether the tree is not closed. */
  get isOpen(): boolean {
    return this.native.isOpen
  }

  /** Lets go of the memory at once; a training that is running keeps its tree. Closing twice is fine. */
  close(): void {
    this.native.close()
  }

  /** Closes the tree at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}

/** The native tree of an argument, or `undefined` for none. */
export function optionalTree(value: unknown, name: string): TreeHandle | undefined {
  if (value === undefined) return undefined
  if (!(value instanceof LabelTree)) throw expected('a LabelTree', name, value)
  return value.native
}
