// aquila group

import { type Command, InvalidArgumentError, Option } from 'commander'
import { AquilaError } from '../errors.js'
import type { AggregateParameters } from '../generated/options.js'
import { Groups } from '../groups.js'
import { readNpz, writeNpz } from '../io.js'
import type { Csr } from '../matrix.js'
import type { ParameterSpec } from '../native/binding.cjs'
import { type CallOptions, specs } from '../options.js'
import {
  beside,
  count,
  DENSE,
  fallback,
  heavy,
  isSaid,
  limited,
  limitOf,
  peakMemory,
  print,
  type RowsOptions,
  readRows,
} from './common.js'
import { interruptible } from './ending.js'
import { checkFiles } from './files.js'

interface Options extends RowsOptions {
  rule: string
  noise: number
  seed: number
  out: string
  y?: string
  bags?: string
  merge: AggregateParameters['merge']
  threads: number
  json: boolean
  memoryLimit?: number
}

interface Rule {
  kind: 'random' | 'kmeans' | 'kmeans-depth'
  /** Samples of a group, or the depth. */
  number: number
}

function ruleOf(text: string): Rule {
  const [, kind, digits] = /^(random|kmeans|kmeans-depth):(\d+)$/.exec(text) ?? []
  const most = (name: string) => specs.cluster.find((spec) => spec.name === name)?.max as number
  const deepest = most('depth')
  if (!kind || Number(digits) < 1 || Number(digits) > (kind === 'kmeans-depth' ? deepest : most('size')))
    throw new AquilaError(
      'INVALID_ARGUMENT',
      `Expected random:SIZE, kmeans:SIZE or kmeans-depth:DEPTH, which is ${deepest} at most, for --rule but received ${text}`,
    )
  return { kind: kind as Rule['kind'], number: Number(digits) }
}

function share(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0 && value <= 1))
    throw new InvalidArgumentError('Expected a number from 0 to 1.')
  return value
}

async function group(options: Options, command: Command): Promise<void> {
  const { seed, threads, json, out, bags, merge, noise } = options
  const { kind, number } = ruleOf(options.rule)
  if (kind === 'random' && isSaid(command, 'noise')) throw beside('--rule kmeans:SIZE', '--noise')
  if (bags === undefined && isSaid(command, 'merge')) throw beside('--bags', '--merge')
  if (bags === undefined ? options.y !== undefined : options.y === undefined && options.xmc === undefined)
    throw new AquilaError('INVALID_ARGUMENT', 'Expected --y and --bags together or neither')
  await interruptible(async (signal) => {
    const call: CallOptions = { threads, seed, signal, ...limitOf(options) }
    await checkFiles(command, '--out', '--bags')
    const { x, y } = await readRows(options, { threads, signal })
    const since = performance.now()
    const groups =
      kind === 'random'
        ? Groups.random(x.rows, number, { seed })
        : await Groups.kmeans(x, { [kind === 'kmeans' ? 'size' : 'depth']: number, noise }, call)
    const seconds = { total: (performance.now() - since) / 1000 }
    const labels = options.y === undefined ? y : await readNpz(options.y, call)
    const made = bags === undefined ? undefined : await groups.aggregate(labels as Csr, { merge }, call)
    const advice = made && (await groups.advise(x, made, call))
    await writeNpz(out, groups.memberships, {}, { signal })
    if (made !== undefined && bags !== undefined) await writeNpz(bags, made, {}, { signal })
    const bagLabels = made?.nnz
    const result = {
      samples: groups.samples,
      groups: groups.size,
      seconds,
      peakMemoryBytes: peakMemory(),
      out,
    }
    print(json, { ...result, ...(bags !== undefined && { bags, bagLabels, ...advice }) }, [
      ['groups', `${groups.size} of ${groups.samples} samples, in ${out}`],
      ...(bags === undefined
        ? []
        : ([['bags', `${bagLabels} labels of groups, in ${bags}`]] as [string, string][])),
      ...(advice?.reasons ?? []).map((reason, i): [string, string] => [
        i === 0 ? `advice: ${advice?.method}` : '',
        reason,
      ]),
    ])
  })
}

/** Adds the verb. */
export function addGroup(program: Command): void {
  const merge = specs.aggregate.find((spec) => spec.name === 'merge') as ParameterSpec
  heavy(
    limited(
      program
        .command('group')
        .description(
          'Put samples into groups and their labels into bags, for experiments, and say how to learn from them.',
        )
        .option('--x <file.npz>', 'samples × features')
        .option('--dense <file.npy>', DENSE)
        .option(
          '--xmc <file.txt>',
          'samples and labels in one text file, plain or gzip, instead of --x and --y',
        )
        .requiredOption(
          '--rule <rule>',
          'random:SIZE, kmeans:SIZE for clusters of at most SIZE, or kmeans-depth:DEPTH for so many splits in two',
        )
        .option(
          '--noise <share>',
          'the share of clustered samples that change places at random',
          share,
          fallback(specs.cluster, 'noise'),
        )
        .option('--seed <n>', 'where all randomness starts', count(0), 0)
        .requiredOption('--out <file.npz>', 'where to write the groups, samples × groups')
        .option('--y <file.npz>', 'samples × labels, to make bags of')
        .option('--bags <file.npz>', "where to write the groups' labels, groups × labels")
        .addOption(
          new Option('--merge <how>', 'list keeps how many samples have a label, set does not')
            .choices(merge.choices as string[])
            .default(merge.default),
        ),
    ),
  ).action(group)
}
