// aquila predict

import type { Command } from 'commander'
import { writeNpz } from '../io.js'
import { type FlatOptions, specs } from '../options.js'
import type { Ranked } from '../ranked.js'
import { XLinear } from '../xlinear.js'
import {
  assignment,
  count,
  DENSE,
  heavy,
  interruptible,
  parse,
  peakMemory,
  print,
  type RowsOptions,
  readRows,
} from './common.js'
import { checkFiles } from './files.js'

interface Options extends RowsOptions {
  model: string
  k: number
  beam: number
  set?: FlatOptions
  repeat: number
  out?: string
  threads: number
  json: boolean
}

async function predict(options: Options, command: Command): Promise<void> {
  const { threads, json, k, beam, repeat } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkFiles(command, '--out')
    using model = await XLinear.open(options.model, {}, call)
    const { x } = await readRows(options, call)
    const parameters = { k, beam, ...parse(options.set ?? {}, specs.predict) }
    let best = Number.POSITIVE_INFINITY
    let top: Ranked | undefined
    for (let i = 0; i < repeat; i++) {
      const start = performance.now()
      top = await model.predict(x, parameters, call)
      best = Math.min(best, performance.now() - start)
    }
    const { rows } = x
    x.close()
    const { labels } = model.info
    if (options.out !== undefined && top) await writeNpz(options.out, top.toCsr(labels), {}, { signal })
    const msPerRow = rows === 0 ? 0 : best / rows
    const peakMemoryBytes = peakMemory()
    print(
      json,
      { rows, labels, msPerRow, repeat, peakMemoryBytes, ...(options.out && { out: options.out }) },
      [
        ['rows', String(rows)],
        ['ms per row', `${msPerRow.toPrecision(3)} (best of ${repeat}, ${threads || 'all'} threads)`],
        ...(options.out ? ([['predictions', options.out]] as [string, string][]) : []),
      ],
    )
  })
}

/** Adds the verb. */
export function addPredict(program: Command): void {
  heavy(
    program
      .command('predict')
      .description('Rank the labels of every row of a matrix.')
      .requiredOption('--model <file>', 'the model file')
      .option('--x <file.npz>', 'rows × features')
      .option('--dense <file.npy>', DENSE)
      .option('--xmc <file.txt>', 'rows in a text file, plain or gzip, instead of --x')
      .option('--k <n>', 'labels returned of a row', count(1), 10)
      .option('--beam <n>', 'nodes kept of each layer', count(1), 10)
      .option('--set <key=value>', 'a further parameter: scores, floor', assignment)
      .option('--repeat <n>', 'predict so many times and report the best time', count(1), 1)
      .option('--out <file.npz>', 'where to write the scores, rows × labels'),
  ).action(predict)
}
