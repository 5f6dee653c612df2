// From rounds to verdicts: the best of the rounds, and ratios where they mean something.

import { RANKS } from './score.mjs'

/** The measures that are compared; of each the least is the best. */
export const MEASURES = {
  trainSeconds: 'training',
  batchMsPerRow: 'batch prediction',
  batchMsPerRowAvx2: 'batch, AVX2',
  batchMsPerRowScalar: 'batch, portable',
  singleMedianMs: 'single query, median',
  singleMedianMsAvx2: 'single, AVX2',
  singleMedianMsScalar: 'single, portable',
  singleP99Ms: 'single query, p99',
  modelBytes: 'model size',
  trainPeakBytes: 'peak memory, training',
}

/** Measures of ours alone, with fewer instructions than the processor has: the peer's measure they are compared with. */
const SAME = {
  batchMsPerRowAvx2: 'batchMsPerRow',
  batchMsPerRowScalar: 'batchMsPerRow',
  singleMedianMsAvx2: 'singleMedianMs',
  singleMedianMsScalar: 'singleMedianMs',
}

const mean = (numbers) => numbers.reduce((sum, n) => sum + n, 0) / numbers.length

/** The least of each measure and the mean quality of several rounds of one system. */
export function bestOf(rounds) {
  const best = {}
  for (const name of Object.keys(MEASURES)) {
    const values = rounds.map((round) => round[name]).filter((value) => Number.isFinite(value))
    best[name] = values.length > 0 ? Math.min(...values) : null
  }
  for (const name of ['precision', 'ndcg'])
    best[name] = Object.fromEntries(RANKS.map((k) => [k, mean(rounds.map((round) => round[name][k]))]))
  return best
}

/** How many points of P@k two systems may differ by and still count as equally good: small test sets are noisy. */
export function tolerance(testRows) {
  return testRows < 5000 ? 0.4 : 0.2
}

/** The ranks at which our P@k is worse than the peer's by more than the tolerance, and by how many points. */
export function shortfalls(ours, peer, testRows) {
  return RANKS.map((k) => ({ k, points: peer.precision[k] - ours.precision[k] })).filter(
    ({ points }) => points > tolerance(testRows) + 1e-9,
  )
}

/**
 * How many times our figure goes into the peer's, for each measure; above 1 we are faster or smaller. Being faster with
 * worse answers is no achievement: then there is no ratio at all, and `worse` says where.
 */
export function compare(ours, peer, testRows) {
  const worse = shortfalls(ours, peer, testRows)
  if (worse.length > 0) return { worse, ratios: null }
  const ratios = {}
  for (const name of Object.keys(MEASURES)) {
    const theirs = peer[SAME[name] ?? name]
    ratios[name] = ours[name] > 0 && theirs !== null ? theirs / ours[name] : null
  }
  return { worse, ratios }
}

/** A peer against the first of ours whose answers are as good as its own, or against the first of all; `by` says which. */
export function against(own, peer, testRows) {
  const verdicts = own.map(({ name, best }) => ({ by: name, ...compare(best, peer, testRows) }))
  return verdicts.find(({ ratios }) => ratios) ?? verdicts[0]
}

/** The geometric mean; `null` of nothing. */
export function geometricMean(numbers) {
  if (numbers.length === 0) return null
  return Math.exp(mean(numbers.map(Math.log)))
}
