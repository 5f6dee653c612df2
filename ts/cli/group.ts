// aquila group

import { type Command, InvalidArgumentError, Option } from 'commander'
import { AquilaError } from '../errors.js'
import type { AggregateParameters } from '../generated/options.js'
import { Groups } from '../groups.js'
import { readNpz, writeNpz } from '../io.js'
import { type CallOptions, specs } from '../options.js'
import { beside, count, fallback, heavy, interruptible, isSaid, peakMemory, print } from './common.js'
import { checkFiles } from './files.js'

interface Options {
  x: string
  rule: string
  noise: number
  seed: number
  out: string
  y?: string
  bags?: string
  merge: AggregateParameters['merge']
  threads: number
  json: boolean
}

function ruleOf(text: string): { rule: 'random' | 'kmeans'; size: number } {
  const [, rule, size] = /^(random|kmeans):(\d+)$/.exec(text) ?? []
  if (!rule || Number(size) < 1)
    throw new AquilaError(
      'INVALID_ARGUMENT',
      `Expected random:SIZE or kmeans:SIZE for --rule but received ${text}`,
    )
  return { rule: rule as 'random' | 'kmeans', size: Number(size) }
}

function share(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0 && value <= 1))
    throw new InvalidArgumentError('Expected a number from 0 to 1.')
  return value
}

async function group(options: Options, command: Command): Promise<void> {
  const { seed, threads, json, out, bags, merge, noise } = options
  const { rule, size } = ruleOf(options.rule)
  if (rule === 'random' && isSaid(command, 'noise')) throw beside('--rule kmeans:SIZE', '--noise')
  if ((options.y === undefined) !== (bags === undefined))
    throw new AquilaError('INVALID_ARGUMENT', 'Expected --y and --bags together or neither')
  await interruptible(async (signal) => {
    const call: CallOptions = { threads, seed, signal }
    await checkFiles(command, '--out', '--bags')
    const x = await readNpz(options.x, call)
    const since = performance.now()
    const groups =
      rule === 'random'
        ? Groups.random(x.rows, size, { seed })
        : await Groups.kmeans(x, { size, noise }, call)
    const seconds = { total: (performance.now() - since) / 1000 }
    const made =
      options.y === undefined
        ? undefined
        : await groups.aggregate(await readNpz(options.y, call), { merge }, call)
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
  heavy(
    program
      .command('group')
      .description(
        'Put samples into groups and their labels into bags, for experiments, and say how to learn from them.',
      )
      .requiredOption('--x <file.npz>', 'samples × features')
      .requiredOption('--rule <rule>', 'random:SIZE, or kmeans:SIZE for clusters of at most SIZE')
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
          .choices(['list', 'set'])
          .default('list'),
      ),
  ).action(group)
}
