// Generated sets with the shape of Amazon-670K: hundreds of thousands of labels with a few rows each, short rows of
// tf-idf weights, labels of one row related to each other.
//
// Labels stand on shelves. Shelves come from cutting the line of all labels again and again into a few uneven pieces,
// so that every label has a path of sections around it, from all labels down to its shelf. Every label and every
// section has words of its own. A row takes one label by popularity, then others near it on the line, rarely far away;
// its words come from its labels, from the sections around them and from a background that all rows share.

import { geometric, pick, shuffled, stream, zipf } from './random.mjs'

const FULL = { rows: 490_449, testRows: 153_025, features: 135_909, labels: 670_091 }

/**
 * The sizes of a set. Rows and labels grow with the scale, features with its square root, as vocabularies do; more
 * than 20,000 test rows would only cost time.
 */
export function shape(scale) {
  const times = (size, factor, least) => Math.max(least, Math.round(size * factor))
  return {
    rows: times(FULL.rows, scale, 10),
    testRows: Math.min(20_000, times(FULL.testRows, scale, 10)),
    features: times(FULL.features, Math.sqrt(scale), 100),
    labels: times(FULL.labels, scale, 10),
  }
}

/** Largest shelf. */
const SHELF = 24
/** Words of a label; words of a section of `size` labels. */
const LABEL_WORDS = 10
const sectionWords = (size) => 6 + Math.round(5 * Math.log2(size))
/** Where a word comes from: this share from a label, this from a section, the rest from the background. */
const FROM_LABEL = 0.28
const FROM_SECTION = 0.34
/** Words of a row before repeated ones are joined: at least, and the mean of what is added. */
const WORDS_LEAST = 12
const WORDS_MORE = 89
/** Labels of a row beyond its first: their mean number, and the most. */
const LABELS_MORE = 5.4
const LABELS_MOST = 30

/** An array that grows. */
class Growing {
  constructor(Type) {
    this.array = new Type(1024)
    this.length = 0
  }

  push(value) {
    if (this.length === this.array.length) {
      const larger = new this.array.constructor(2 * this.length)
      larger.set(this.array)
      this.array = larger
    }
    this.array[this.length++] = value
  }

  done() {
    return this.array.slice(0, this.length)
  }
}

/** The sections of all labels, outermost first: the ends of each, its parent, and the shelf of each label. */
function cut(next, labels) {
  const [first, last, parent] = [[0], [labels], [-1]]
  const shelf = new Uint32Array(labels)
  for (let section = 0; section < first.length; section++) {
    const size = last[section] - first[section]
    if (size <= SHELF) {
      shelf.fill(section, first[section], last[section])
      continue
    }
    const pieces = 4 + pick(next, 9)
    const weights = Array.from({ length: pieces }, () => 0.3 + next())
    const sum = weights.reduce((total, weight) => total + weight, 0)
    let [done, start] = [0, first[section]]
    for (const [i, weight] of weights.entries()) {
      done += weight
      const end = i === pieces - 1 ? last[section] : first[section] + Math.round((size * done) / sum)
      if (end <= start) continue
      first.push(start)
      last.push(end)
      parent.push(section)
      start = end
    }
  }
  return { first, last, parent, shelf }
}

/** The world that rows are drawn from. */
function world(seed, { features, labels }) {
  const next = stream(seed, 0)
  const sections = cut(next, labels)
  // Which words are common has nothing to do with their ids, nor which labels are with their places.
  const [wordIds, labelIds] = [shuffled(next, features), shuffled(next, labels)]
  const common = zipf(features, 8, 1.05)
  const rare = (from) => wordIds[Math.min(features - 1, Math.floor(features * from() ** 1.8))]
  const labelWords = Uint32Array.from({ length: labels * LABEL_WORDS }, () => rare(next))
  const sectionStart = [0]
  for (const [i, first] of sections.first.entries())
    sectionStart.push(sectionStart[i] + sectionWords(sections.last[i] - first))
  const wordsOfSections = Uint32Array.from({ length: sectionStart.at(-1) }, () => rare(next))
  return {
    sections,
    popular: (
      (draw) => (from) =>
        labelIds[draw(from)]
    )(zipf(labels, 12, 0.72)),
    background: (from) => wordIds[common(from)],
    labelWord: (from, label) => labelWords[label * LABEL_WORDS + pick(from, LABEL_WORDS)],
    sectionWord: (from, section) => {
      const start = sectionStart[section]
      return wordsOfSections[start + pick(from, sectionStart[section + 1] - start)]
    },
  }
}

/** Another label for a row: mostly a near one of the same shelf or the section around it. */
function related(next, { sections, popular }, label) {
  const kind = next()
  if (kind < 0.06) return popular(next)
  let section = sections.shelf[label]
  if (kind < 0.3 && sections.parent[section] >= 0) section = sections.parent[section]
  const step = (1 + geometric(next, kind < 0.3 ? 40 : 3)) * (next() < 0.5 ? -1 : 1)
  const found = label + step
  return found >= sections.first[section] && found < sections.last[section] ? found : label - step
}

/** A section around a label, small ones more often than large ones. */
function around(next, { parent, shelf }, label) {
  let section = shelf[label]
  while (parent[section] > 0 && next() < 0.4) section = parent[section]
  return section
}

/** One part of a set: labels of each row, and how often it has which word. */
function part(next, from, rows, { features, labels }) {
  const x = {
    indptr: new Uint32Array(rows + 1),
    indices: new Growing(Uint32Array),
    values: new Growing(Float32Array),
  }
  const y = { indptr: new Uint32Array(rows + 1), indices: new Growing(Uint32Array) }
  const counts = new Uint16Array(features)
  for (let i = 0; i < rows; i++) {
    const first = from.popular(next)
    const own = new Set([first])
    for (let more = Math.min(LABELS_MOST, geometric(next, LABELS_MORE)); more > 0; more--) {
      const label = related(next, from, first)
      if (label >= 0 && label < labels) own.add(label)
    }
    const all = [...own]
    for (const label of all.toSorted((a, b) => a - b)) y.indices.push(label)
    y.indptr[i + 1] = y.indices.length

    const words = []
    for (let left = WORDS_LEAST + geometric(next, WORDS_MORE); left > 0; left--) {
      const kind = next()
      // A row is most of all about its first label.
      const label = next() < 0.2 ? first : all[pick(next, all.length)]
      let word
      if (kind < FROM_LABEL) word = from.labelWord(next, label)
      else if (kind < FROM_LABEL + FROM_SECTION)
        word = from.sectionWord(next, around(next, from.sections, label))
      else word = from.background(next)
      if (counts[word]++ === 0) words.push(word)
    }
    for (const word of Uint32Array.from(words).sort()) {
      x.indices.push(word)
      x.values.push(counts[word])
      counts[word] = 0
    }
    x.indptr[i + 1] = x.indices.length
  }
  return {
    x: { rows, cols: features, indptr: x.indptr, indices: x.indices.done(), values: x.values.done() },
    y: {
      rows,
      cols: labels,
      indptr: y.indptr,
      indices: y.indices.done(),
      values: new Float32Array(y.indices.length).fill(1),
    },
  }
}

/** Counts become tf-idf weights, rows get length 1. */
function weigh({ rows, indptr, indices, values }, idf) {
  for (let i = 0; i < rows; i++) {
    let squares = 0
    for (let at = indptr[i]; at < indptr[i + 1]; at++) {
      values[at] = (1 + Math.log(values[at])) * idf[indices[at]]
      squares += values[at] ** 2
    }
    const scale = 1 / Math.sqrt(squares)
    for (let at = indptr[i]; at < indptr[i + 1]; at++) values[at] *= scale
  }
}

/**
 * A whole set: the same for the same scale and seed. Its matrices are what `Csr.from` takes.
 *
 * @param {number} scale - 1 is as large as Amazon-670K.
 * @param {number} seed
 */
export function generate(scale, seed) {
  const sizes = shape(scale)
  const from = world(seed, sizes)
  const trn = part(stream(seed, 1), from, sizes.rows, sizes)
  const tst = part(stream(seed, 2), from, sizes.testRows, sizes)
  const documents = new Uint32Array(sizes.features)
  for (const word of trn.x.indices) documents[word]++
  const idf = Float64Array.from(documents, (count) => 1 + Math.log((1 + sizes.rows) / (1 + count)))
  weigh(trn.x, idf)
  weigh(tst.x, idf)
  return { trn, tst }
}
