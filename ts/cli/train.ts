// aquila train

import type { Command } from 'commander'
import { AquilaError } from '../errors.js'
import type { Groups } from '../groups.js'
import { readNpz } from '../io.js'
import type { Csr } from '../matrix.js'
import { type CallOptions, type FlatOptions, specs } from '../options.js'
import { LabelTree } from '../tree.js'
import { trainGroupsParameters, trainParameters, XLinear } from '../xlinear.js'
import {
  assignment,
  count,
  DENSE,
  heavy,
  interruptible,
  limited,
  parse,
  peakMemory,
  print,
  progress,
  type RowsOptions,
  readGroups,
  readRows,
  size,
} from './common.js'
import { checkFiles, readNames, readText } from './files.js'

interface Options extends RowsOptions {
  y?: string
  groups?: string
  bags?: string
  out: string
  set?: FlatOptions
  seed: number
  memoryLimit: number
  tree?: string
  labels?: string
  featureNames?: string
  threads: number
  json: boolean
}

type Known = { y: Csr } | { groups: Groups; bags: Csr }

function parameterHelp(): string {
  const lines = [...specs.train, ...specs.groups].map((spec) => {
    const value = `${spec.name}=${spec.default}`
    return `  ${value.padEnd(32)} ${spec.doc}`
  })
  return `\nParameters for --set, with their defaults:\n${lines.join('\n')}`
}

/** The labels of rows, or those of groups. */
async function readLabels(options: Options, y: Csr | undefined, call: CallOptions): Promise<Known> {
  const { groups, bags } = options
  if ((groups === undefined) !== (bags === undefined))
    throw new AquilaError('INVALID_ARGUMENT', 'Expected --groups and --bags together')
  if (groups !== undefined && bags !== undefined) {
    if (y || options.y !== undefined)
      throw new AquilaError('INVALID_ARGUMENT', 'Expected labels of rows or of groups, not both')
    return readGroups({ groups, bags }, call)
  }
  const labels = options.y === undefined ? y : await readNpz(options.y, call)
  if (!labels) throw new AquilaError('INVALID_ARGUMENT', 'Expected --y beside --x, or --groups and --bags')
  return { y: labels }
}

/** What `--set` says. It is refused before gigabytes are read. */
function readParameters({ set = {}, groups }: Options): Record<string, unknown> {
  const ofGroups = groups !== undefined
  const parameters = parse(set, ofGroups ? [...specs.groups, ...specs.train] : specs.train)
  if (ofGroups) trainGroupsParameters(parameters)
  else trainParameters(parameters)
  return parameters
}

/** A tree from a file, whose name stands in what is wrong with it. */
async function readTree(path: string): Promise<LabelTree> {
  const text = await readText(path)
  try {
    return LabelTree.fromJson(text)
  } catch (error) {
    if (!(error instanceof AquilaError)) throw error
    throw new AquilaError(error.code, `${path}: ${error.message}`, { cause: error })
  }
}

/** To the engine no names are as good as none given; a file of names was given. */
function checkNamed(names: string[] | undefined, one: string, count: number): void {
  if (names?.length === 0 && count > 0)
    throw new AquilaError('SHAPE_MISMATCH', `0 ${one} names for ${count} ${one}s`)
}

async function train(options: Options, command: Command): Promise<void> {
  const { threads, seed, memoryLimit, json } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkFiles(command, '--out')
    const parameters = readParameters(options)
    const data = await readRows(options, call)
    const known = await readLabels(options, data.y, call)
    const { x } = data
    const labelTree = options.tree === undefined ? undefined : await readTree(options.tree)
    const [labelNames, featureNames] = await Promise.all([
      readNames(options.labels),
      readNames(options.featureNames),
    ])

    const { cols } = 'y' in known ? known.y : known.bags
    checkNamed(labelNames, 'label', cols)
    checkNamed(featureNames, 'feature', x.cols)
    if (!json) process.stderr.write(`${x.rows} rows, ${x.cols} features, ${cols} labels\n`)
    const { show, end } = progress(json)
    const everything = { ...parameters, labelTree, labelNames, featureNames }
    const heavily = { ...call, seed, memoryLimit, onProgress: show }
    const training =
      'y' in known
        ? XLinear.train(x, known.y, everything, heavily)
        : XLinear.trainGroups(x, known.groups, known.bags, everything, heavily)
    const model = await training.finally(end)
    const { rows, cols: features } = x
    x.close()
    for (const matrix of Object.values(known)) matrix.close()
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
        `${seconds.total.toFixed(2)} (label vectors ${seconds.labelVectors.toFixed(2)}, tree ${seconds.tree.toFixed(2)}, overlap ${seconds.overlap.toFixed(2)}, layers ${seconds.layers.toFixed(2)}, layout ${seconds.layout.toFixed(2)})`,
      ],
      ['peak memory', `${size(peakMemoryBytes)} (forecast ${size(forecastBytes)})`],
    ])
  })
}

/** Adds the verb. */
export function addTrain(program: Command): void {
  heavy(
    limited(
      program
        .command('train')
        .description('Learn a model from rows and their labels.')
        .option('--x <file.npz>', 'rows × features')
        .option('--dense <file.npy>', DENSE)
        .option('--y <file.npz>', 'rows × labels')
        .option('--groups <file.npz>', 'rows × groups, where labels are known for groups only')
        .option('--bags <file.npz>', "the groups' labels, groups × labels")
        .option('--xmc <file.txt>', 'rows and labels in one text file, plain or gzip, instead of --x and --y')
        .requiredOption('--out <file>', 'the model file to write')
        .option('--set <key=value>', 'a training parameter; may be given many times', assignment)
        .option('--seed <n>', 'where all randomness starts', count(0), 0)
        .option('--tree <file.json>', 'a label tree of your own, as inspect --tree writes it')
        .option('--labels <file.txt>', 'names of the labels, one a line')
        .option('--feature-names <file.txt>', 'names of the features, such as words, one a line'),
    ),
  )
    .addHelpText('after', parameterHelp())
    .action(train)
}
