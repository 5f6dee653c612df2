// aquila predict

import type { Command } from 'commander'
import { writeNpz } from '../io.js'
import type { Ranked } from '../ranked.js'
import { XLinear } from '../xlinear.js'
import { count, heavy, interruptible, peakMemory, print, readRows } from './common.js'
import { checkFiles } from './files.js'
import { parametersOf, type SearchedOptions, searched } from './search.js'

interface Options extends SearchedOptions {
  repeat: number
  out?: string
  threads: number
  json: boolean
}

async function predict(options: Options, command: Command): Promise<void> {
  const { threads, json, repeat } = options
  const parameters = parametersOf(options, command)
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkFiles(command, '--out')
    using model = await XLinear.open(options.model, {}, call)
    // Refuses what prediction would refuse, before gigabytes are read.
    model.searcher(parameters)
    const { x } = await readRows(options, call)
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
  const verb = program.command('predict').description('Rank the labels of every row of a matrix.')
  heavy(
    searched(verb)
      .option('--repeat <n>', 'predict so many times and report the best time', count(1), 1)
      .option('--out <file.npz>', 'where to write the scores, rows × labels'),
  ).action(predict)
}
