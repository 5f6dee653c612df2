// Quality of ranked labels. It knows nothing of the engine and judges every system's answers alike.

/** The ranks at which quality is measured. */
export const RANKS = [1, 3, 5]

/**
 * Scored labels of a CSR matrix as ranked ones: in each row best first, ties by label.
 *
 * @param {{ indptr: ArrayLike<number>, indices: ArrayLike<number>, values: ArrayLike<number> }} scored
 */
export function rankScores({ indptr, indices, values }) {
  const rows = []
  for (let i = 0; i + 1 < indptr.length; i++) {
    const places = Array.from({ length: indptr[i + 1] - indptr[i] }, (_, n) => indptr[i] + n)
    places.sort((a, b) => values[b] - values[a] || indices[a] - indices[b])
    rows.push(places.map((place) => indices[place]))
  }
  return rows
}

/**
 * Ranked labels from a table of `k` labels a row, best first; a negative number stands for "no more labels".
 *
 * @param {ArrayLike<number>} table
 * @param {number} k
 */
export function rankTable(table, k) {
  if (table.length % k !== 0)
    throw new Error(`Expected rows of ${k} labels but received ${table.length} labels`)
  const rows = []
  for (let start = 0; start < table.length; start += k) {
    const row = []
    for (let n = 0; n < k && table[start + n] >= 0; n++) row.push(table[start + n])
    rows.push(row)
  }
  return rows
}

/** The gain of a right label at a rank counted from 0. */
const gain = (rank) => 1 / Math.log2(rank + 2)

/**
 * Mean precision and nDCG at each rank, in percent. All rows count, those without labels as 0; a list that is too
 * short misses its further ranks.
 *
 * P@k = |right labels among the first k| / k.
 * nDCG@k = sum over right labels at rank r ≤ k of 1 / log2(r + 1), divided by its best value, which min(k, |labels of
 * the row|) right labels in front have.
 *
 * @param {{ indptr: ArrayLike<number>, indices: ArrayLike<number>, values?: ArrayLike<number> }} truth - A CSR matrix:
 *   every entry that is not 0 is a label of its row.
 * @param {number[][]} ranked - The labels found for each row, best first.
 * @param {number[]} ranks
 */
export function score(truth, ranked, ranks = RANKS) {
  const rows = truth.indptr.length - 1
  if (ranked.length !== rows)
    throw new Error(`Expected answers for ${rows} rows but received ${ranked.length}`)
  const most = Math.max(...ranks)
  const precision = Object.fromEntries(ranks.map((k) => [k, 0]))
  const ndcg = Object.fromEntries(ranks.map((k) => [k, 0]))
  let unlabelled = 0
  for (let i = 0; i < rows; i++) {
    const labels = new Set()
    for (let at = truth.indptr[i]; at < truth.indptr[i + 1]; at++)
      if (truth.values?.[at] !== 0) labels.add(truth.indices[at])
    if (labels.size === 0) unlabelled++
    if (new Set(ranked[i]).size !== ranked[i].length)
      throw new Error(`Row ${i} has a label twice in its answer`)
    let [right, found, best] = [0, 0, 0]
    for (let rank = 0; rank < most; rank++) {
      if (rank < ranked[i].length && labels.has(ranked[i][rank])) {
        right++
        found += gain(rank)
      }
      if (rank < labels.size) best += gain(rank)
      const k = rank + 1
      if (!ranks.includes(k)) continue
      precision[k] += right / k
      if (best > 0) ndcg[k] += found / best
    }
  }
  for (const sums of [precision, ndcg]) for (const k of ranks) sums[k] = rows ? (100 * sums[k]) / rows : 0
  return { rows, unlabelled, precision, ndcg }
}
