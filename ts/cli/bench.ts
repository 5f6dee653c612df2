// aquila bench

import type { Command } from 'commander'
import { AquilaError } from '../errors.js'
import type { FeatureRow } from '../matrix.js'
import { type FlatOptions, specs } from '../options.js'
import { XLinear } from '../xlinear.js'
import {
  assignment,
  count,
  DENSE,
  heavy,
  interruptible,
  parse,
  print,
  type RowsOptions,
  readRows,
} from './common.js'

interface Options extends RowsOptions {
  model: string
  single?: boolean
  queries: number
  rounds: number
  k: number
  beam: number
  set?: FlatOptions
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

async function bench(options: Options): Promise<void> {
  const { threads, json, rounds } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    using model = await XLinear.open(options.model, {}, call)
    const { x } = await readRows(options, call)
    const parameters = { k: options.k, beam: options.beam, ...parse(options.set ?? {}, specs.predict) }
    const queries = Math.min(options.queries, x.rows)
    if (queries === 0) throw new AquilaError('INVALID_ARGUMENT', 'Expected rows but received none')
    // All rows, evenly picked, in JavaScript's memory: the clock runs for the queries alone.
    const rows = Array.from(
      { length: queries },
      (_, i): FeatureRow => x.row(Math.floor((i * x.rows) / queries)),
    )
    const searcher = model.searcher(parameters)
    const times = time(rounds, queries, (i) => {
      const row = rows[i] as (typeof rows)[number]
      searcher.search(row.indices, row.values, row.dense)
    })
    const singleMs = summary(times)
    const microseconds = (ms: number) => `${(1000 * ms).toFixed(1)} µs`
    print(json, { queries, rounds, singleMs }, [
      ['queries', `${queries}, one after another; of each the best of ${rounds} rounds after a warm-up`],
      ['median', microseconds(singleMs.median)],
      ['p99', microseconds(singleMs.p99)],
      ['mean', microseconds(singleMs.mean)],
    ])
  })
}

/** Adds the verb. */
export function addBench(program: Command): void {
  heavy(
    program
      .command('bench')
      .description('Time single queries from JavaScript through the public API.')
      .requiredOption('--model <file>', 'the model file')
      .option('--x <file.npz>', 'rows × features')
      .option('--dense <file.npy>', DENSE)
      .option('--xmc <file.txt>', 'rows in a text file, plain or gzip, instead of --x')
      .option('--single', 'one query after another; the only kind there is')
      .option('--queries <n>', 'how many different rows to ask', count(1), 500)
      .option('--rounds <n>', 'how many times to ask each; its best time counts', count(1), 3)
      .option('--k <n>', 'labels returned of a row', count(1), 10)
      .option('--beam <n>', 'nodes kept of each layer', count(1), 10)
      .option('--set <key=value>', 'a further parameter: scores, floor', assignment),
  ).action(bench)
}
