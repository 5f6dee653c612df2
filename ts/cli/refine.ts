// aquila refine

import type { Command } from 'commander'
import { refine as refineLabels } from '../eagle.js'
import { Groups } from '../groups.js'
import { readNpz, writeNpz } from '../io.js'
import {
  checkTarget,
  count,
  heavy,
  interruptible,
  peakMemory,
  print,
  progress,
  type RowsOptions,
  readRows,
} from './common.js'

interface Options extends RowsOptions {
  groups: string
  bags: string
  rounds: number
  folds: number
  threshold: number
  seed: number
  out: string
  threads: number
  json: boolean
}

async function refine(options: Options): Promise<void> {
  const { threads, json, rounds, folds, threshold, seed, out } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkTarget(out)
    const { x } = await readRows(options, call)
    const groups = Groups.fromMemberships(await readNpz(options.groups, call))
    const bags = await readNpz(options.bags, call)
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
  heavy(
    program
      .command('refine')
      .description('Find the labels of samples whose labels are known for groups only.')
      .option('--x <file.npz>', 'samples × features')
      .option('--dense <file.npy>', 'dense block beside the sparse rows')
      .requiredOption('--groups <file.npz>', 'samples × groups')
      .requiredOption('--bags <file.npz>', "the groups' labels, groups × labels")
      .option('--rounds <n>', 'rounds of rankers; 0 is the fast form', count(0), 2)
      .option('--folds <n>', 'parts of the groups, each scored by rankers of the others', count(2), 3)
      .option('--threshold <p>', 'least probability of a label in random groups', Number, 0.45)
      .option('--seed <n>', 'where all randomness starts', count(0), 0)
      .requiredOption('--out <file.npz>', 'where to write the confidences, samples × labels'),
  ).action(refine)
}
