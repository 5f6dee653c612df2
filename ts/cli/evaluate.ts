// aquila evaluate

import type { Command } from 'commander'
import { readNpz } from '../io.js'
import { type AtK, evaluate, type Report } from '../metrics.js'
import { type FlatOptions, specs } from '../options.js'
import { assignment, counts, heavy, interruptible, parse, print } from './common.js'

interface Options {
  pred: string
  y: string
  trainY?: string
  dataSet?: string
  k: number[]
  set?: FlatOptions
  threads: number
  json: boolean
}

const NAMES: [keyof Report, string][] = [
  ['precision', 'P'],
  ['ndcg', 'nDCG'],
  ['recall', 'R'],
  ['psp', 'PSP'],
  ['psndcg', 'PSnDCG'],
  ['microF1', 'micro-F1'],
  ['macroF1', 'macro-F1'],
]

async function run(options: Options): Promise<void> {
  const { threads, k, json } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    const [top, y] = [await readNpz(options.pred, call), await readNpz(options.y, call)]
    const trainY = options.trainY === undefined ? undefined : await readNpz(options.trainY, call)
    const parameters = parse(options.set ?? {}, specs.metrics)
    const propensity = trainY && {
      trainY,
      ...(options.dataSet && { dataSet: options.dataSet }),
    }
    const report = await evaluate(top, y, { k, propensity, ...parameters }, call)
    const lines = NAMES.flatMap(([key, name]): [string, string][] => {
      const at = report[key] as AtK | undefined
      return at ? k.map((n) => [`${name}@${n}`, `${(100 * (at[n] as number)).toFixed(2)} %`]) : []
    })
    const kept = `${report.rows}, ${report.unlabelledRows} without labels (${report.unlabelled})`
    print(json, { ...report }, [['rows', kept], ...lines])
  })
}

/** Adds the verb. */
export function addEvaluate(program: Command): void {
  heavy(
    program
      .command('evaluate')
      .description('Measure predictions against the true labels. JSON values are fractions from 0 to 1.')
      .requiredOption('--pred <file.npz>', 'scores, rows × labels, as predict writes them')
      .requiredOption('--y <file.npz>', 'true labels, rows × labels')
      .option('--train-y <file.npz>', 'labels of the training rows: adds the propensity-scored measures')
      .option('--data-set <name>', 'public data set whose propensity constants to use')
      .option('--k <list>', 'the ranks to measure at', counts, [1, 3, 5])
      .option('--set <key=value>', 'a further parameter: unlabelled, floor', assignment),
  ).action(run)
}
