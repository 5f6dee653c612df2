// aquila assign

import type { Command } from 'commander'
import { assign as assignLabels } from '../eagle.js'
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
  iterations: number
  step: number
  out: string
  embeddings?: string
  threads: number
  json: boolean
}

async function assign(options: Options): Promise<void> {
  const { threads, json, iterations, step, out } = options
  await interruptible(async (signal) => {
    const call = { threads, signal }
    await checkTarget(out)
    await checkTarget(options.embeddings)
    const { x } = await readRows(options, call)
    const groups = Groups.fromMemberships(await readNpz(options.groups, call))
    const bags = await readNpz(options.bags, call)
    const embeddings = options.embeddings !== undefined
    const { show, end } = progress(json)
    const found = await assignLabels(
      x,
      groups,
      bags,
      { iterations, step, embeddings },
      { ...call, onProgress: show },
    ).finally(end)
    await writeNpz(out, found.y, {}, { signal })
    if (options.embeddings !== undefined && found.embeddings)
      await writeNpz(options.embeddings, found.embeddings, {}, { signal })
    const { rows, cols: labels, nnz } = found.y
    const seconds = { total: found.seconds }
    const result = {
      rows,
      labels,
      groups: groups.size,
      assigned: nnz,
      seconds,
      peakMemoryBytes: peakMemory(),
    }
    print(json, { ...result, out, ...(embeddings && { embeddings: options.embeddings }) }, [
      ['assigned', `${nnz} labels to ${rows} samples, in ${out}`],
      ['seconds', seconds.total.toFixed(2)],
    ])
  })
}

/** Adds the verb. */
export function addAssign(program: Command): void {
  heavy(
    program
      .command('assign')
      .description('Give each label of each group to one of its samples (EAGLE).')
      .option('--x <file.npz>', 'samples × features')
      .option('--dense <file.npy>', 'dense block beside the sparse rows')
      .requiredOption('--groups <file.npz>', 'samples × groups')
      .requiredOption('--bags <file.npz>', "the groups' labels, groups × labels")
      .option('--iterations <n>', 'rounds of the embeddings; 0 takes the mean of all samples', count(0), 20)
      .option('--step <n>', 'how far each round goes', Number, 0.1)
      .requiredOption('--out <file.npz>', 'where to write the similarities, samples × labels')
      .option('--embeddings <file.npz>', "where to write the labels' embeddings, labels × features"),
  ).action(assign)
}
