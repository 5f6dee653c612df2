// What labels mean in each of their leaves.

/** Which labels to tell of, and how much. */
export interface MeaningsOptions {
  /** These labels; without it, all that are placed under several leaves. */
  labels?: Uint32Array | undefined
  /**
   * The most features to name for each leaf; 0 names leaves and neighbours alone, and reads no weights.
   * @defaultValue `10`
   */
  features?: number | undefined
}

/** A feature that tells a leaf of a label from its others. */
export interface Telling {
  /** The feature. */
  feature: number
  /** Its name, where the model has names. */
  name?: string
  /** Its weight in this leaf. */
  weight: number
  /** By how much that passes the largest weight that it has in another leaf of the label. */
  lead: number
}

/** A leaf that a label is placed under. */
export interface Leaf {
  /** The layer of its slots, the root's children being layer 0. */
  layer: number
  /** Its number among the parents of that layer. */
  node: number
  /** The other labels there. */
  neighbours: Uint32Array
  /** Which features tell the label from its neighbours here, more than in its other leaves; the largest lead first. */
  features: Telling[]
}

/** What a label means in each of its leaves. */
export interface Meanings {
  /** The label. */
  label: number
  /** Its name, where the model has names. */
  name?: string
  /** Its leaves, in the order of the tree. */
  leaves: Leaf[]
}
