// aquila embed

import type { Command } from 'commander'
import { embed as embedLabels } from '../eagle.js'
import { AquilaError } from '../errors.js'
import { writeNpy, writeNpz } from '../io.js'
import { Dense } from '../matrix.js'
import {
  embeddingOptions,
  type GroupedOptions,
  grouped,
  heavy,
  interruptible,
  onGroups,
  peakMemory,
  print,
} from './common.js'

interface Options extends GroupedOptions {
  iterations: number
  step: number
}

async function embed(options: Options): Promise<void> {
  const { json, iterations, step, out } = options
  await interruptible(async (signal) => {
    const [, kind] = /\.(npy|npz)(\.gz)?$/.exec(out) ?? []
    if (kind === undefined)
      throw new AquilaError(
        'INVALID_ARGUMENT',
        `Expected a name in .npz or .npy for --out but received ${out}`,
      )
    const dense = kind === 'npy'
    const { embeddings, seconds, size } = await onGroups(options, signal, ({ x, groups, bags }, call) =>
      embedLabels(x, groups, bags, { iterations, step, dense }, call),
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
      '--out <file>',
      'where to write labels × features: .npz for sparse rows, .npy for dense ones',
    ),
  ).action(embed)
}
