// aquila assign

import type { Command } from 'commander'
import { assign as assignLabels } from '../eagle.js'
import { writeNpz } from '../io.js'
import {
  embeddingOptions,
  type GroupedOptions,
  grouped,
  heavy,
  onGroups,
  peakMemory,
  print,
} from './common.js'
import { interruptible } from './ending.js'

interface Options extends GroupedOptions {
  iterations: number
  step: number
  normalize: boolean
  embeddings?: string
}

async function assign(options: Options, command: Command): Promise<void> {
  const { json, iterations, step, normalize, out } = options
  await interruptible(async (signal) => {
    const embeddings = options.embeddings !== undefined
    const found = await onGroups(options, command, signal, ({ x, groups, bags }, call) =>
      assignLabels(x, groups, bags, { iterations, step, normalize, embeddings }, call),
    )
    await writeNpz(out, found.y, {}, { signal })
    if (options.embeddings !== undefined && found.embeddings)
      await writeNpz(options.embeddings, found.embeddings, {}, { signal })
    const { rows, cols: labels, nnz } = found.y
    const seconds = { total: found.seconds }
    const result = {
      rows,
      labels,
      groups: found.size,
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
  const verb = program
    .command('assign')
    .description('Give each label of each group to one of its samples (EAGLE).')
  heavy(
    embeddingOptions(grouped(verb))
      .requiredOption('--out <file.npz>', 'where to write the similarities, samples × labels')
      .option('--embeddings <file.npz>', "where to write the labels' embeddings, labels × features"),
  ).action(assign)
}
