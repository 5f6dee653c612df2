// aquila evaluate

import type { Command } from 'commander'
import { readNpz } from '../io.js'
import type { Csr } from '../matrix.js'
import { type AtK, evaluate, type Report } from '../metrics.js'
import { type FlatOptions, specs } from '../options.js'
import { assignment, beside, counts, either, heavy, parse, print } from './common.js'
import { interruptible } from './ending.js'

const OF_PROPENSITY = 'propensity.'

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
  ['psndcgPerRow', 'PSnDCG by rows'],
  ['microF1', 'micro-F1'],
  ['macroF1', 'macro-F1'],
  ['exampleF1', 'example-F1'],
  ['hammingAccuracy', 'Hamming accuracy'],
]

/** Refuses what does not go together. */
function checkSaid({ trainY, dataSet, set = {} }: Options): void {
  const constant = Object.keys(set).find((name) => name.startsWith(OF_PROPENSITY))
  if (trainY === undefined && dataSet !== undefined) throw beside('--train-y', '--data-set')
  if (trainY === undefined && constant !== undefined) throw beside('--train-y', `--set ${constant}`)
  if (dataSet !== undefined && constant !== undefined) throw either('--data-set', `--set ${constant}`)
}

/** The parameters of the propensities apart from the others. */
function measured(set: Record<string, unknown>, trainY: Csr | undefined, dataSet: string | undefined) {
  const own = Object.entries(set).filter(([name]) => name.startsWith(OF_PROPENSITY))
  const constants = own.map(([name, value]) => [name.slice(OF_PROPENSITY.length), value])
  const others = Object.entries(set).filter(([name]) => !name.startsWith(OF_PROPENSITY))
  const propensity = trainY && { trainY, dataSet, ...Object.fromEntries(constants) }
  return { ...Object.fromEntries(others), propensity }
}

async function run(options: Options): Promise<void> {
  const { threads, k, json } = options
  checkSaid(options)
  await interruptible(async (signal) => {
    const call = { threads, signal }
    const [top, y] = [await readNpz(options.pred, call), await readNpz(options.y, call)]
    const trainY = options.trainY === undefined ? undefined : await readNpz(options.trainY, call)
    const set = parse(options.set ?? {}, specs.metrics)
    const report = await evaluate(top, y, { k, ...measured(set, trainY, options.dataSet) }, call)
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
      .option(
        '--set <key=value>',
        'a further parameter: unlabelled, floor, propensity.a, propensity.b',
        assignment,
      ),
  ).action(run)
}
