// Labels of several meanings by construction. Topics have words of their own and labels of one meaning; a homonym stands
// for something in each of several topics, with other words in each.

import { labelsOf } from './fused.mjs'
import { pick, shuffled } from './random.mjs'

/** What is generated: labels of one meaning a topic, homonyms and their meanings. */
export const SHAPE = { topics: 60, single: 20, homonyms: 600, meanings: 2 }

const WORDS_OF_TOPIC = 10
const WORDS_OF_MEANING = 3

export const labelCount = ({ topics, single, homonyms }) => topics * single + homonyms

/** The topics of each homonym. */
export const topicsOf = (shape, next) =>
  Array.from({ length: shape.homonyms }, () => [...shuffled(next, shape.topics).subarray(0, shape.meanings)])

/**
 * Rows of one topic each, two labels a row: features, labels, and the topic of each row, which is the meaning of its
 * homonyms.
 */
export function draw(Csr, shape, meant, count, next) {
  const { topics, single, homonyms, meanings } = shape
  const begin = topics * WORDS_OF_TOPIC
  const words = begin + (topics * single + meanings * homonyms) * WORDS_OF_MEANING
  const of = Array.from({ length: topics }, (_, t) =>
    Array.from({ length: single }, (_, i) => ({ label: t * single + i, meaning: t * single + i })),
  )
  for (const [h, pair] of meant.entries())
    for (const [side, t] of pair.entries())
      of[t].push({ label: topics * single + h, meaning: topics * single + meanings * h + side })
  const [x, y, topicOf] = [[], [], []]
  for (let i = 0; i < count; i++) {
    const topic = pick(next, topics)
    const [own, labels] = [new Set(), new Set()]
    for (let j = 0; j < 4; j++)
      own.add(topic * WORDS_OF_TOPIC + pick(next, WORDS_OF_TOPIC)).add(pick(next, words))
    for (let j = 0; j < 2; j++) {
      const { label, meaning } = of[topic][pick(next, of[topic].length)]
      labels.add(label)
      for (let k = 0; k < 2; k++) own.add(begin + meaning * WORDS_OF_MEANING + pick(next, WORDS_OF_MEANING))
    }
    x.push([...own].sort((a, b) => a - b))
    y.push([...labels].sort((a, b) => a - b))
    topicOf.push(topic)
  }
  return { x: labelsOf(Csr, x, words), y: labelsOf(Csr, y, labelCount(shape)), topicOf }
}

/**
 * The leaves of a tree as JSON: arrays of labels, which may be changed in place. The root is none, unless it has no nodes.
 */
export function leavesOf(root) {
  const withLabels = (node) => {
    const below = node.filter(Array.isArray)
    const own = below.length < node.length ? [node] : []
    return [...own, ...below.flatMap(withLabels)]
  }
  const below = root.filter(Array.isArray)
  return below.length > 0 ? below.flatMap(withLabels) : [root]
}

/** How many homonyms have leaves of all their topics; the topic of a leaf is that of most of its labels of one meaning. */
export function separated(root, shape, meant) {
  const first = shape.topics * shape.single
  const at = meant.map(() => new Set())
  for (const leaf of leavesOf(root)) {
    const votes = new Map()
    for (const label of leaf)
      if (label < first) {
        const topic = Math.floor(label / shape.single)
        votes.set(topic, (votes.get(topic) ?? 0) + 1)
      }
    const [topic] = [...votes].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0] ?? []
    for (const label of leaf) if (label >= first && !Array.isArray(label)) at[label - first].add(topic)
  }
  return meant.filter((pair, h) => pair.every((t) => at[h].has(t))).length
}

/** A tree in which each slot is a label of its own, and for each of these the label that it was. */
export function clones(root) {
  const was = []
  const walk = (node) => node.map((child) => (Array.isArray(child) ? walk(child) : was.push(child) - 1))
  return { root: walk(root), was }
}

/** The tree with `more` further slots, dealt to its leaves at random. */
export function dealt(root, labels, more, next) {
  const copy = structuredClone(root)
  const leaves = leavesOf(copy)
  for (let left = more; left > 0; ) {
    const [leaf, label] = [leaves[pick(next, leaves.length)], pick(next, labels)]
    if (!leaf.includes(label)) left -= leaf.push(label) && 1
  }
  return copy
}

/**
 * The variation of information between two ways to part the same things, in bits: 0 where they are the same, up to the
 * sum of both entropies where one tells nothing of the other. `pairs` has for each thing its part in both.
 */
export function variationOfInformation(pairs) {
  const counts = [new Map(), new Map(), new Map()]
  for (const [a, b] of pairs)
    for (const [i, key] of [a, b, `${a} ${b}`].entries()) counts[i].set(key, (counts[i].get(key) ?? 0) + 1)
  const [first, second, both] = counts.map((count) => {
    let sum = 0
    for (const n of count.values()) sum -= (n / pairs.length) * Math.log2(n / pairs.length)
    return sum
  })
  return 2 * both - first - second
}
