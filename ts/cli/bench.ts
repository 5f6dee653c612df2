// aquila bench

import type { Command } from 'commander'
import { AquilaError } from '../errors.js'
import type { FeatureRow } from '../matrix.js'
import { simd } from '../runtime.js'
import { XLinear } from '../xlinear.js'
import { count, heavy, print, readRows } from './common.js'
import { interruptible } from './ending.js'
import { parametersOf, type SearchedOptions, searched, searchOf } from './search.js'

interface Options extends SearchedOptions {
  single?: boolean
  queries: number
  rounds: number
  threads: number
  json: boolean
}

/** Each query's best time over the rounds, one query after another, in ms. */
function time(rounds: number, queries: number, query: (i: number) => void): Float64Array {
  const best = new Float64Array(queries).fill(Number.POSITIVE_INFINITY)
  for (let i = 0; i < queries; i++) query(i)
  for (let round = 0; round < rounds; round++)
    for (let i = 0; i < queries; i++) {
      const start = performance.now()
      query(i)
      const took = performance.now() - start
      if (took < (best[i] as number)) best[i] = took
    }
  return best
}

function summary(times: Float64Array): { median: number; p99: number; mean: number } {
  const sorted = times.slice().sort()
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number
  return { median: at(0.5), p99: at(0.99), mean: times.reduce((sum, t) => sum + t, 0) / times.length }
}

async function bench(options: Options, command: Command): Promise<void> {
  const { threads, json, rounds } = options
  const parameters = parametersOf(options, command)
  await interruptible(async (signal) => {
    const call = { threads, signal }
    using model = await XLinear.open(options.model, { verify: options.verify }, call)
    const { searcher } = await searchOf(model, options, parameters)
    const { x } = await readRows(options, call)
    const queries = Math.min(options.queries, x.rows)
    if (queries === 0) throw new AquilaError('INVALID_ARGUMENT', 'Expected rows but received none')
    // All rows, evenly picked, in JavaScript's memory: the clock runs for the queries alone.
    const rows = Array.from(
      { length: queries },
      (_, i): FeatureRow => x.row(Math.floor((i * x.rows) / queries)),
    )
    const times = time(rounds, queries, (i) => {
      const row = rows[i] as (typeof rows)[number]
      searcher.search(row.indices, row.values, row.dense)
    })
    const singleMs = summary(times)
    const microseconds = (ms: number) => `${(1000 * ms).toFixed(1)} µs`
    const instructions = simd().used
    print(json, { queries, rounds, simd: instructions, singleMs }, [
      ['instruction set', instructions],
      ['queries', `${queries}, one after another; of each the best of ${rounds} rounds after a warm-up`],
      ['median', microseconds(singleMs.median)],
      ['p99', microseconds(singleMs.p99)],
      ['mean', microseconds(singleMs.mean)],
    ])
  })
}

/** Adds the verb. */
export function addBench(program: Command): void {
  const verb = program
    .command('bench')
    .description('Time single queries from JavaScript through the public API.')
  heavy(
    searched(verb)
      .option(
        '--single',
        'time one query after another; so it is without this option too (batches: predict --repeat)',
      )
      .option('--queries <n>', 'how many different rows to ask', count(1), 500)
      .option('--rounds <n>', 'how many times to ask each; its best time counts', count(1), 3),
  ).action(bench)
}
