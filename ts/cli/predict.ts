// aquila predict

import type { Command } from 'commander'
import { readNpz, writeNpz } from '../io.js'
import type { Ranked } from '../ranked.js'
import { XLinear } from '../xlinear.js'
import { count, either, heavy, interruptible, isSaid, peakMemory, print, readRows } from './common.js'
import { checkFiles } from './files.js'
import { parametersOf, type SearchedOptions, searched, searchOf } from './search.js'

interface Options extends SearchedOptions {
  chosen?: string
  repeat: number
  out?: string
  threads: number
  json: boolean
}

/** All chosen labels are scored: nothing narrows them. */
function checkChosen({ chosen, allowed, set = {} }: Options, command: Command): void {
  if (chosen === undefined) return
  if (allowed !== undefined) throw either('--chosen', '--allowed')
  for (const name of ['k', 'beam']) {
    if (isSaid(command, name)) throw either('--chosen', `--${name}`)
    if (name in set) throw either('--chosen', `--set ${name}`)
  }
}

async function predict(options: Options, command: Command): Promise<void> {
  const { threads, json, repeat } = options
  const parameters = parametersOf(options, command)
  checkChosen(options, command)
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkFiles(command, '--out')
    using model = await XLinear.open(options.model, {}, call)
    const { search } = await searchOf(model, options, parameters)
    const chosen = options.chosen === undefined ? undefined : await readNpz(options.chosen, call)
    const { x } = await readRows(options, call)
    let best = Number.POSITIVE_INFINITY
    let top: Ranked | undefined
    for (let i = 0; i < repeat; i++) {
      const start = performance.now()
      top = await model.predict(x, { ...search, ...(chosen && { chosen }) }, call)
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
      .option('--chosen <file.npz>', 'score just these labels of each row, all of them: rows × labels')
      .option('--repeat <n>', 'predict so many times and report the best time', count(1), 1)
      .option('--out <file.npz>', 'where to write the scores, rows × labels'),
  ).action(predict)
}
