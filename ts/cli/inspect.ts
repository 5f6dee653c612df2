// aquila inspect

import type { Command } from 'commander'
import { AquilaError } from '../errors.js'
import type { Leaf, Meanings, Telling } from '../meanings.js'
import type { CallOptions } from '../options.js'
import { XLinear } from '../xlinear.js'
import { beside, count, either, isSaid, print, size } from './common.js'
import { interruptible } from './ending.js'
import { checkFiles, readNames, writeText } from './files.js'

interface Options {
  verify?: boolean
  tree?: string
  label?: string
  several?: boolean
  featureNames?: string
  top: number
  json: boolean
}

/** What the model is, as a whole. */
function summary(path: string, model: XLinear, options: Options): void {
  const { info } = model
  const names = model.labelNames.length
  const words = model.featureName(0) === undefined ? 0 : info.features
  const verified = options.verify ? { verified: true } : {}
  const dense = info.denseFeatures ? `, the last ${info.denseFeatures} dense` : ''
  const several = info.several ? `, ${info.several} in several leaves` : ''
  const atRoot = info.atRoot ? `, ${info.atRoot} under the root as well` : ''
  print(options.json, { ...info, labelNames: names, featureNames: words, ...verified }, [
    ['file', `${path}, ${size(info.bytes)}, format version ${info.version}`],
    ['features', `${info.features}${dense}${words ? ', named' : ''}`],
    ['labels', `${info.labels} in ${info.slots} slots${several}${atRoot}${names ? ', named' : ''}`],
    ['tree', `${info.layers.join(' > ')} columns`],
    ['weights', String(info.weights)],
    ['seed', String(info.seed)],
    ...Object.entries(info.params).map(([name, value]): [string, string] => [name, String(value)]),
    ...(info.metadata === undefined
      ? []
      : ([['metadata', JSON.stringify(info.metadata)]] as [string, string][])),
    ...(options.verify ? ([['checksums', 'all match']] as [string, string][]) : []),
  ])
}

/** A label by its name, or by its number. */
function labelOf(model: XLinear, text: string): number {
  const named = model.labelNames.indexOf(text)
  if (named >= 0) return named
  if (/^\d+$/.test(text)) {
    const { labels } = model.info
    if (Number(text) < labels) return Number(text)
    throw new AquilaError('INDEX_OUT_OF_RANGE', `label ${text} is not below the number of labels, ${labels}`)
  }
  throw new AquilaError(
    'INVALID_ARGUMENT',
    `Expected the name or number of a label for --label but received "${text}"`,
  )
}

/** Names that the model does not have, from a file. */
function named(all: Meanings[], words: string[] | undefined, model: XLinear): Meanings[] {
  if (!words) return all
  const { features } = model.info
  if (words.length !== features)
    throw new AquilaError(
      'SHAPE_MISMATCH',
      `there are ${words.length} feature names but the model has ${features} features`,
    )
  const name = (t: Telling): Telling => ({ ...t, name: words[t.feature] as string })
  const leaf = (l: Leaf): Leaf => ({ ...l, features: l.features.map(name) })
  return all.map((meanings) => ({ ...meanings, leaves: meanings.leaves.map(leaf) }))
}

/** What labels mean in each of their leaves, as lines that a person reads. */
function* told(all: Meanings[], model: XLinear, top: number): Generator<string> {
  const label = (id: number) => model.labelName(id) ?? String(id)
  const words = (list: Telling[]) =>
    list.map((t) => `${t.name ?? t.feature} +${t.lead.toFixed(2)}`).join(', ')
  for (const { label: id, name, leaves } of all) {
    yield `${name === undefined ? '' : `${name}, `}label ${id}: ${leaves.length === 1 ? 'one leaf' : `${leaves.length} leaves`}`
    for (const { layer, node, neighbours, features } of leaves) {
      const shown = [...neighbours.subarray(0, Math.max(top, 1))].map(label).join(', ')
      const more = neighbours.length - Math.max(top, 1)
      const company =
        neighbours.length === 0 ? 'alone' : `beside ${shown}${more > 0 ? ` and ${more} more` : ''}`
      yield `  leaf ${node} of layer ${layer}, ${company}`
      if (features.length > 0) yield `    told by ${words(features)}`
    }
  }
}

async function meanings(model: XLinear, options: Options, call: CallOptions): Promise<void> {
  const labels = options.label === undefined ? undefined : Uint32Array.of(labelOf(model, options.label))
  const words = await readNames(options.featureNames)
  const all = named(await model.meanings({ labels, features: options.top }, call), words, model)
  if (options.json) {
    const leaf = (l: Leaf) => ({ ...l, neighbours: [...l.neighbours] })
    print(true, { meanings: all.map((m) => ({ ...m, leaves: m.leaves.map(leaf) })) }, [])
    return
  }
  const lines = [...told(all, model, options.top)]
  process.stdout.write(`${lines.join('\n') || 'no label is placed under several leaves'}\n`)
}

async function inspect(path: string, options: Options, command: Command): Promise<void> {
  const ofLabels = options.label !== undefined || options.several
  if (options.label !== undefined && options.several) throw either('--label', '--several')
  if (!ofLabels && options.featureNames !== undefined) throw beside('--label or --several', '--feature-names')
  if (!ofLabels && isSaid(command, 'top')) throw beside('--label or --several', '--top')
  await interruptible(async (signal) => {
    await checkFiles(command, '--tree')
    using model = await XLinear.open(path, {}, { signal })
    if (options.verify) await model.verify({ signal })
    if (options.tree !== undefined) await writeText(options.tree, model.tree().toJson())
    if (ofLabels) await meanings(model, options, { signal })
    else summary(path, model, options)
  })
}

/** Adds the verb. */
export function addInspect(program: Command): void {
  program
    .command('inspect')
    .description('Show what a model file holds, or what labels mean in each of their leaves.')
    .argument('<model>', 'the model file')
    .option('--verify', "compare every byte with the file's checksums")
    .option('--tree <file.json>', 'write the label tree to this file')
    .option('--label <label>', 'tell the leaves of this label apart: its number, or its name')
    .option('--several', 'tell the leaves apart of every label that is placed under several')
    .option('--top <n>', 'how many features and neighbours to name for each leaf', count(0), 10)
    .option('--feature-names <file.txt>', 'names of the features where the model has none, one a line')
    .option('--json', 'print the result as one JSON object', false)
    .action(inspect)
}
