// aquila train

import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { AquilaError } from '../errors.js'
import type { TrainParameters } from '../generated/options.js'
import { readNpz } from '../io.js'
import { type FlatOptions, specs } from '../options.js'
import { LabelTree } from '../tree.js'
import { forecast, XLinear } from '../xlinear.js'
import {
  assignment,
  bytes,
  checkTarget,
  count,
  heavy,
  interruptible,
  parse,
  peakMemory,
  print,
  progress,
  type RowsOptions,
  readRows,
  size,
} from './common.js'

interface Options extends RowsOptions {
  y?: string
  out: string
  set?: FlatOptions
  seed: number
  memoryLimit: number
  tree?: string
  labels?: string
  threads: number
  json: boolean
}

function parameterHelp(): string {
  const lines = specs.train.map((spec) => {
    const value = `${spec.name}=${spec.default}`
    return `  ${value.padEnd(32)} ${spec.doc}`
  })
  return `\nParameters for --set, with their defaults:\n${lines.join('\n')}`
}

async function readNames(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8')
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}

async function train(options: Options): Promise<void> {
  const { threads, seed, memoryLimit, json } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkTarget(options.out)
    const data = await readRows(options, call)
    const y = options.y === undefined ? data.y : await readNpz(options.y, call)
    if (!y) throw new AquilaError('INVALID_ARGUMENT', 'Expected --y beside --x')
    const { x } = data
    const parameters = parse(options.set ?? {}, specs.train) as TrainParameters
    const labelTree =
      options.tree === undefined ? undefined : LabelTree.fromJson(await readFile(options.tree, 'utf8'))
    const labelNames = options.labels === undefined ? undefined : await readNames(options.labels)

    if (!json) {
      const expects = await forecast(x, y, parameters, call)
      process.stderr.write(
        `${x.rows} rows, ${x.cols} features, ${y.cols} labels; forecast: ${size(expects)} of memory at most\n`,
      )
    }
    const { show, end } = progress(json)
    const model = await XLinear.train(
      x,
      y,
      { ...parameters, labelTree, labelNames },
      { ...call, seed, memoryLimit, onProgress: show },
    ).finally(end)
    const { rows, cols: features } = x
    x.close()
    y.close()
    await model.save(options.out, { signal })

    const { seconds, forecastBytes } = model.report as NonNullable<typeof model.report>
    const { layers, labels, bytes: modelBytes, slots, weights } = model.info
    const peakMemoryBytes = peakMemory()
    const result = {
      seconds,
      peakMemoryBytes,
      forecastBytes,
      modelBytes,
      layers,
      slots,
      weights,
      rows,
      features,
      labels,
    }
    print(json, { ...result, out: options.out }, [
      ['model', `${options.out}, ${size(modelBytes)}, ${weights} weights`],
      ['tree', `${layers.join(' > ')} columns`],
      [
        'seconds',
        `${seconds.total.toFixed(2)} (label vectors ${seconds.labelVectors.toFixed(2)}, tree ${seconds.tree.toFixed(2)}, layers ${seconds.layers.toFixed(2)}, layout ${seconds.layout.toFixed(2)})`,
      ],
      ['peak memory', `${size(peakMemoryBytes)} (forecast ${size(forecastBytes)})`],
    ])
  })
}

/** Adds the verb. */
export function addTrain(program: Command): void {
  heavy(
    program
      .command('train')
      .description('Learn a model from rows and their labels.')
      .option('--x <file.npz>', 'rows × features')
      .option('--dense <file.npy>', 'dense block beside the sparse rows')
      .option('--y <file.npz>', 'rows × labels')
      .option('--xmc <file.txt>', 'rows and labels in one text file, plain or gzip, instead of --x and --y')
      .requiredOption('--out <file>', 'the model file to write')
      .option('--set <key=value>', 'a training parameter; may be given many times', assignment)
      .option('--seed <n>', 'where all randomness starts', count(0), 0)
      .option(
        '--memory-limit <bytes>',
        'refuse when the forecast passes this, such as 2G; 0 means no limit',
        bytes,
        0,
      )
      .option('--tree <file.json>', 'a label tree of your own, as inspect --tree writes it')
      .option('--labels <file.txt>', 'names of the labels, one a line'),
  )
    .addHelpText('after', parameterHelp())
    .action(train)
}
