// aquila refine

import type { Command } from 'commander'
import { refine as refineLabels } from '../eagle.js'
import { writeNpz } from '../io.js'
import { specs } from '../options.js'
import {
  count,
  fallback,
  type GroupedOptions,
  grouped,
  heavy,
  number,
  onGroups,
  peakMemory,
  print,
} from './common.js'
import { interruptible } from './ending.js'

interface Options extends GroupedOptions {
  rounds: number
  folds: number
  threshold: number
  seed: number
  relevance?: string
}

async function refine(options: Options, command: Command): Promise<void> {
  const { json, rounds, folds, threshold, seed, out, relevance } = options
  await interruptible(async (signal) => {
    const found = await onGroups(options, command, signal, ({ x, groups, bags }, call) =>
      refineLabels(x, groups, bags, { rounds, folds, threshold }, { ...call, seed }),
    )
    await writeNpz(out, found.y, {}, { signal })
    if (relevance !== undefined) await writeNpz(relevance, found.relevance, {}, { signal })
    const set = Object.entries(found.solver).map(([name, value]) => `--set solver.${name}=${value}`)
    const { rows, cols: labels, nnz } = found.y
    const { likeness, seconds: total } = found
    const result = {
      rows,
      labels,
      groups: found.size,
      refined: nnz,
      likeness,
      threshold: found.threshold,
      solver: found.solver,
      seconds: { total },
      peakMemoryBytes: peakMemory(),
    }
    const next: [string, string] = ['train with', `--y ${out} --relevance ${relevance} ${set.join(' ')}`]
    print(json, { ...result, out, ...(relevance !== undefined && { relevance }) }, [
      ['refined', `${nnz} labels of ${rows} samples, in ${out}`],
      ['likeness', `${likeness.toFixed(3)} of samples in one group; threshold ${found.threshold.toFixed(2)}`],
      ...(relevance === undefined ? [] : [next]),
      ['seconds', total.toFixed(2)],
    ])
  })
}

/** Adds the verb. */
export function addRefine(program: Command): void {
  const usual = (name: string) => fallback(specs.refine, name)
  const verb = program
    .command('refine')
    .description('Find the labels of samples whose labels are known for groups only.')
  heavy(
    grouped(verb)
      .option('--rounds <n>', 'rounds of rankers; 0 is the fast form', count(0), usual('rounds'))
      .option(
        '--folds <n>',
        'parts of the groups, each scored by rankers of the others',
        count(2),
        usual('folds'),
      )
      .option('--threshold <p>', 'least probability of a label in random groups', number, usual('threshold'))
      .option('--seed <n>', 'where all randomness starts', count(0), 0)
      .requiredOption('--out <file.npz>', 'where to write the confidences, samples × labels')
      .option('--relevance <file.npz>', 'where to write what labels weigh, for --relevance of train'),
  ).action(refine)
}
