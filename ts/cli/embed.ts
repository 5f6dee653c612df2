// aquila embed

import type { Command } from 'commander'
import { embed as embedLabels } from '../eagle.js'
import { writeNpy, writeNpz } from '../io.js'
import { Dense } from '../matrix.js'
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
import { isArray } from './files.js'

interface Options extends GroupedOptions {
  iterations: number
  step: number
  normalize: boolean
}

async function embed(options: Options, command: Command): Promise<void> {
  const { json, iterations, step, normalize, out } = options
  await interruptible(async (signal) => {
    const dense = isArray(out, 'npy')
    const { embeddings, seconds, size } = await onGroups(
      options,
      command,
      signal,
      ({ x, groups, bags }, call) =>
        embedLabels(x, groups, bags, { iterations, step, normalize, dense }, call),
    )
    if (embeddings instanceof Dense) await writeNpy(out, embeddings, { signal })
    else await writeNpz(out, embeddings, {}, { signal })
    const { rows: labels, cols: features } = embeddings
    const result = { labels, features, groups: size, seconds: { total: seconds } }
    print(json, { ...result, peakMemoryBytes: peakMemory(), out }, [
      ['embedded', `${labels} labels in ${features} features, in ${out}`],
      ['seconds', seconds.toFixed(2)],
    ])
  })
}

/** Adds the verb. */
export function addEmbed(program: Command): void {
  const verb = program
    .command('embed')
    .description('Learn a vector for each label from the groups that carry it.')
  heavy(
    embeddingOptions(grouped(verb)).requiredOption(
      '--out <file.npz|file.npy>',
      'where to write labels × features, as sparse rows or as dense ones',
    ),
  ).action(embed)
}
