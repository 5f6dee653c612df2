// Label trees: typed arrays in memory, JSON in files.

import { native } from './native.js'
import { AquilaError, expected } from './errors.js'
import { isObject } from './options.js'

/** One layer of a {@link LabelTree}: the children of every node of the layer above, node after node. */
export interface TreeLayer {
  /** Children of parent `p` are the columns `starts[p]` up to `starts[p + 1]`. */
  starts: Uint32Array
  /** For each column its label, or {@link INNER_NODE}. The n-th inner node is parent `n` of the next layer. */
  labels: Uint32Array
}

/** A label tree: its leaves are slots that point to labels; a label may have several slots. */
export interface LabelTree {
  /** Number of labels. */
  labels: number
  /** The layers, root first. */
  layers: TreeLayer[]
}

/** Stands in {@link TreeLayer.labels} for a column that is an inner node. */
export const INNER_NODE: number = native.INNER_NODE

/** The tree as plain JSON values; inner nodes are −1. */
export function treeToJson(tree: LabelTree): { labels: number; layers: { starts: number[]; labels: number[] }[] } {
  const layers = tree.layers.map(({ starts, labels }) => ({
    starts: Array.from(starts),
    labels: Array.from(labels, (label) => (label === INNER_NODE ? -1 : label)),
  }))
  return { labels: tree.labels, layers }
}

function ids(value: unknown, name: string): Uint32Array {
  if (!Array.isArray(value)) throw expected('an array of integers', name, value)
  return Uint32Array.from(value, (id: unknown, i) => {
    if (id === -1) return INNER_NODE
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= INNER_NODE)
      throw expected('a label id or -1', `${name}[${i}]`, id)
    return id
  })
}

/** The tree of JSON values as {@link treeToJson} makes them. */
export function treeFromJson(json: unknown): LabelTree {
  if (!isObject(json) || !Array.isArray(json['layers']))
    throw new AquilaError('BAD_TREE', 'a tree needs "labels" and "layers"')
  const layers = json['layers'].map((layer: unknown, t) => {
    if (!isObject(layer)) throw expected('an object', `layers[${t}]`, layer)
    return {
      starts: ids(layer['starts'], `layers[${t}].starts`),
      labels: ids(layer['labels'], `layers[${t}].labels`),
    }
  })
  return { labels: Number(json['labels']), layers }
}

/** Starts and labels of each layer in turn, as the native library takes them. */
export function treeArrays(tree: unknown): Uint32Array[] {
  const layers = isObject(tree) ? tree['layers'] : undefined
  if (!Array.isArray(layers)) throw expected('a LabelTree', 'labelTree', tree)
  return layers.flatMap((layer: unknown, t) => {
    const { starts, labels } = isObject(layer) ? layer : {}
    for (const [name, array] of Object.entries({ starts, labels }))
      if (!(array instanceof Uint32Array)) throw expected('a Uint32Array', `layers[${t}].${name}`, array)
    return [starts as Uint32Array, labels as Uint32Array]
  })
}
