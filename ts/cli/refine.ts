// aquila refine

import type { Command } from 'commander'
import { refine as refineLabels } from '../eagle.js'
import { writeNpz } from '../io.js'
import { specs } from '../options.js'
import {
  checkTarget,
  count,
  fallback,
  type GroupedOptions,
  grouped,
  heavy,
  interruptible,
  peakMemory,
  print,
  progress,
  readGroups,
  readRows,
} from './common.js'

interface Options extends GroupedOptions {
  rounds: number
  folds: number
  threshold: number
  seed: number
}

async function refine(options: Options): Promise<void> {
  const { threads, json, rounds, folds, threshold, seed, out } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkTarget(out)
    const { x } = await readRows(options, call)
    const { groups, bags } = await readGroups(options, call)
    const { show, end } = progress(json)
    const found = await refineLabels(
      x,
      groups,
      bags,
      { rounds, folds, threshold },
      { ...call, seed, onProgress: show },
    ).finally(end)
    await writeNpz(out, found.y, {}, { signal })
    const { rows, cols: labels, nnz } = found.y
    const { likeness, seconds: total } = found
    const result = {
      rows,
      labels,
      groups: groups.size,
      refined: nnz,
      likeness,
      threshold: found.threshold,
      seconds: { total },
      peakMemoryBytes: peakMemory(),
    }
    print(json, { ...result, out }, [
      ['refined', `${nnz} labels of ${rows} samples, in ${out}`],
      ['likeness', `${likeness.toFixed(3)} of samples in one group; threshold ${found.threshold.toFixed(2)}`],
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
      .option('--threshold <p>', 'least probability of a label in random groups', Number, usual('threshold'))
      .option('--seed <n>', 'where all randomness starts', count(0), 0)
      .requiredOption('--out <file.npz>', 'where to write the confidences, samples × labels'),
  ).action(refine)
}
