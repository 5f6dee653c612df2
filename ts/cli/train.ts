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
  beside,
  count,
  DENSE,
  either,
  heavy,
  limited,
  limitOf,
  parse,
  peakMemory,
  print,
  progress,
  type RowsOptions,
  readGroups,
  readRows,
  size,
} from './common.js'
import { interruptible } from './ending.js'
import { checkFiles, isArray, made, readLabelNames, readNames, readText } from './files.js'

interface Options extends RowsOptions {
  y?: string
  groups?: string
  bags?: string
  out: string
  set?: FlatOptions
  seed: number
  memoryLimit?: number
  tree?: string[]
  labelVectors?: string
  relevance?: string
  negatives?: string
  metadata?: string
  labels?: string
  featureNames?: string
  threads: number
  json: boolean
}

/** Parameters of vectors made from rows: for vectors of one's own they mean nothing. */
const OF_OWN_VECTORS = ['tree.vectors', 'tree.vectorCut', 'tree.vectorMass']

type Known = { y: Csr } | { groups: Groups; bags: Csr }

function parameterHelp(): string {
  const lines = [...specs.train, ...specs.groups].map((spec) => {
    const value = `${spec.name}=${spec.default}`
    return `  ${value.padEnd(32)} ${spec.doc}`
  })
  return `\nParameters for --set, with their defaults:\n${lines.join('\n')}`
}

/** Refuses what does not go together. */
function checkSaid({ y, xmc, groups, bags, tree, ...options }: Options): void {
  if ((groups === undefined) !== (bags === undefined))
    throw new AquilaError('INVALID_ARGUMENT', 'Expected --groups and --bags together')
  const ofRows = y !== undefined || xmc !== undefined
  if (groups !== undefined && ofRows)
    throw new AquilaError('INVALID_ARGUMENT', 'Expected labels of rows or of groups, not both')
  if (groups === undefined && !ofRows)
    throw new AquilaError('INVALID_ARGUMENT', 'Expected --y beside --x, or --groups and --bags')
  for (const option of ['relevance', 'negatives'] as const)
    if (!ofRows && options[option] !== undefined) throw beside('labels of rows', `--${option}`)
  if (tree && options.labelVectors !== undefined) throw either('--tree', '--label-vectors')
  for (const name of Object.keys(options.set ?? {})) {
    if (tree && name.startsWith('tree.')) throw either('--tree', `--set ${name}`)
    if (options.labelVectors !== undefined && OF_OWN_VECTORS.includes(name))
      throw either('--label-vectors', `--set ${name}`)
  }
}

/** The labels of rows, or those of groups. */
async function readLabels(options: Options, y: Csr | undefined, call: CallOptions): Promise<Known> {
  const { groups, bags } = options
  if (groups !== undefined && bags !== undefined) return readGroups({ groups, bags }, call)
  return { y: options.y === undefined ? (y as Csr) : await readNpz(options.y, call) }
}

/** What `--set` says. It is refused before gigabytes are read. */
function readParameters({ set = {}, groups, relevance }: Options): Record<string, unknown> {
  const ofGroups = groups !== undefined
  const parameters = parse(set, ofGroups ? [...specs.groups, ...specs.train] : specs.train)
  const all = ofGroups ? trainGroupsParameters(parameters) : trainParameters(parameters)
  if (relevance !== undefined && all['solver.relevance'] === 'off')
    throw beside('--set solver.relevance=induce or leaves', '--relevance')
  return parameters
}

/** A tree from a file of JSON, or from those of a chain, whose names appear in error messages. */
async function readTree(paths: string[], call: CallOptions): Promise<LabelTree> {
  if (paths.every((path) => isArray(path, 'npz'))) {
    const chain = await Promise.all(paths.map((path) => readNpz(path, call)))
    const tree = made(paths, () => LabelTree.fromChain(chain))
    for (const matrix of chain) matrix.close()
    return tree
  }
  const [path, more] = paths as [string, string?]
  if (more !== undefined)
    throw new AquilaError('INVALID_ARGUMENT', 'Expected one JSON file or a chain of .npz files for --tree')
  const text = await readText(path)
  return made(paths, () => LabelTree.fromJson(text))
}

/** Any JSON value from a file. */
async function readJson(path: string): Promise<unknown> {
  const text = await readText(path)
  return made([path], () => JSON.parse(text))
}

/** What training takes beside rows, their labels and parameters. */
async function readMore(options: Options, call: CallOptions) {
  const { tree, labelVectors, metadata } = options
  const [labelNames, featureNames] = await Promise.all([
    readLabelNames(options.labels),
    readNames(options.featureNames),
  ])
  return {
    labelNames,
    featureNames,
    labelTree: tree && (await readTree(tree, call)),
    metadata: metadata === undefined ? undefined : await readJson(metadata),
    labelVectors: labelVectors === undefined ? undefined : await readNpz(labelVectors, call),
  }
}

/** What weighs rows and their labels. */
async function readWeighing({ relevance, negatives }: Options, call: CallOptions) {
  const read = (path?: string) => (path === undefined ? undefined : readNpz(path, call))
  return { relevance: await read(relevance), negatives: await read(negatives) }
}

/** To the engine no names are as good as none given; a file of names was given. */
function checkNamed(names: string[] | undefined, one: string, count: number): void {
  if (names?.length === 0 && count > 0)
    throw new AquilaError('SHAPE_MISMATCH', `0 ${one} names for ${count} ${one}s`)
}

async function train(options: Options, command: Command): Promise<void> {
  const { threads, seed, json } = options
  checkSaid(options)
  const parameters = readParameters(options)
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkFiles(command, '--out')
    const more = await readMore(options, call)
    const data = await readRows(options, call)
    const known = await readLabels(options, data.y, call)
    const weighing = await readWeighing(options, call)
    const { x } = data
    const { cols } = 'y' in known ? known.y : known.bags
    checkNamed(more.labelNames, 'label', cols)
    checkNamed(more.featureNames, 'feature', x.cols)
    if (!json) process.stderr.write(`${x.rows} rows, ${x.cols} features, ${cols} labels\n`)
    const { show, end } = progress(json)
    const everything = { ...parameters, ...more }
    const heavily = { ...call, seed, ...limitOf(options), onProgress: show }
    const training =
      'y' in known
        ? XLinear.train(x, known.y, { ...everything, ...weighing }, heavily)
        : XLinear.trainGroups(x, known.groups, known.bags, everything, heavily)
    const model = await training.finally(end)
    const { rows, cols: features } = x
    for (const matrix of [x, more.labelVectors, ...Object.values(known), ...Object.values(weighing)])
      matrix?.close()
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
      [
        'peak memory',
        `${size(peakMemoryBytes)} of the whole process, Node.js included (forecast for the engine: ${size(forecastBytes)})`,
      ],
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
        .option(
          '--tree <file...>',
          'a label tree of your own: JSON as inspect --tree writes it, or a chain of .npz files, root first',
        )
        .option('--label-vectors <file.npz>', 'vectors of your own to make the tree of, labels × anything')
        .option('--relevance <file.npz>', 'relevance of each label of each row, for solver.relevance')
        .option('--negatives <file.npz>', 'further negatives, rows × labels')
        .option('--labels <file.txt>', 'names of the labels, one a line')
        .option('--feature-names <file.txt>', 'names of the features, such as words, one a line')
        .option('--metadata <file.json>', 'any JSON value to keep in the model'),
    ),
  )
    .addHelpText('after', parameterHelp())
    .action(train)
}
