// aquila predict

import type { Command } from 'commander'
import { readNpz, writeNpz } from '../io.js'
import { Ranked } from '../ranked.js'
import { XLinear } from '../xlinear.js'
import { count, either, heavy, isSaid, peakMemory, print, readRows } from './common.js'
import { interruptible } from './ending.js'
import { checkFiles } from './files.js'
import { writeJson, writeLines } from './ranking.js'
import { parametersOf, type SearchedOptions, searched, searchOf } from './search.js'

interface Options extends SearchedOptions {
  chosen?: string
  repeat: number
  out?: string
  threads: number
  json: boolean
}

/** The name of no file but of standard output. */
const STDOUT = '-'

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
  // Looked at as no file, for it is none.
  if (options.out === STDOUT) command.setOptionValue('out', undefined)
  const { out } = command.opts<Options>()
  const parameters = parametersOf(options, command)
  checkChosen(options, command)
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkFiles(command, '--out')
    using model = await XLinear.open(options.model, { verify: options.verify }, call)
    const { search } = await searchOf(model, options, parameters)
    const chosen = options.chosen === undefined ? undefined : await readNpz(options.chosen, call)
    const { x } = await readRows(options, call)
    let best = Number.POSITIVE_INFINITY
    let top = new Ranked({
      indptr: new Uint32Array(1),
      labels: new Uint32Array(),
      scores: new Float32Array(),
    })
    for (let i = 0; i < repeat; i++) {
      const start = performance.now()
      top = await model.predict(x, { ...search, ...(chosen && { chosen }) }, call)
      best = Math.min(best, performance.now() - start)
    }
    const { rows } = x
    x.close()
    const { labels } = model.info
    if (out !== undefined) await writeNpz(out, top.toCsr(labels), {}, { signal })
    const msPerRow = rows === 0 ? 0 : best / rows
    const peakMemoryBytes = peakMemory()
    const result = { rows, labels, msPerRow, repeat, peakMemoryBytes, ...(out !== undefined && { out }) }
    const lines: [string, string][] = [
      ['rows', String(rows)],
      ['ms per row', `${msPerRow.toPrecision(3)} (best of ${repeat}, ${threads || 'all'} threads)`],
    ]
    if (out !== undefined) print(json, result, [...lines, ['predictions', out]])
    else if (json) await writeJson(result, top, signal)
    else {
      await writeLines(top, signal)
      print(false, result, lines, process.stderr)
    }
  })
}

/** Adds the verb. */
export function addPredict(program: Command): void {
  const verb = program.command('predict').description('Rank the labels of every row of a matrix.')
  heavy(
    searched(verb)
      .option('--chosen <file.npz>', 'score just these labels of each row, all of them: rows × labels')
      .option('--repeat <n>', 'predict so many times and report the best time', count(1), 1)
      .option(
        '--out <file.npz>',
        'where to write the scores, rows × labels; without it, or with -, they go to standard output: a line of label:score pairs for each row, best first',
      ),
  ).action(predict)
}
