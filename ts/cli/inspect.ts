// aquila inspect

import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { XLinear } from '../xlinear.js'
import { checkTarget, interruptible, print, size } from './common.js'

interface Options {
  verify?: boolean
  tree?: string
  json: boolean
}

async function inspect(path: string, options: Options): Promise<void> {
  await interruptible(async (signal) => {
    await checkTarget(options.tree)
    using model = await XLinear.open(path, {}, { signal })
    if (options.verify) await model.verify({ signal })
    if (options.tree !== undefined) await writeFile(options.tree, model.tree().toJson())
    const { info } = model
    const names = model.labelNames.length
    const verified = options.verify ? { verified: true } : {}
    print(options.json, { ...info, labelNames: names, ...verified }, [
      ['file', `${path}, ${size(info.bytes)}, format version ${info.version}`],
      ['features', `${info.features}${info.denseFeatures ? `, the last ${info.denseFeatures} dense` : ''}`],
      [
        'labels',
        `${info.labels} in ${info.slots} slots${info.several ? `, ${info.several} in several leaves` : ''}${names ? ', named' : ''}`,
      ],
      ['tree', `${info.layers.join(' > ')} columns`],
      ['weights', String(info.weights)],
      ['seed', String(info.seed)],
      ...Object.entries(info.params).map(([name, value]): [string, string] => [name, String(value)]),
      ...(info.metadata === undefined
        ? []
        : ([['metadata', JSON.stringify(info.metadata)]] as [string, string][])),
      ...(options.verify ? ([['checksums', 'all match']] as [string, string][]) : []),
    ])
  })
}

/** Adds the verb. */
export function addInspect(program: Command): void {
  program
    .command('inspect')
    .description('Show what a model file holds.')
    .argument('<model>', 'the model file')
    .option('--verify', "compare every byte with the file's checksums")
    .option('--tree <file.json>', 'write the label tree to this file')
    .option('--json', 'print the result as one JSON object', false)
    .action(inspect)
}
