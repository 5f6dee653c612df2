// How predict and bench look rows up.

import type { Command } from 'commander'
import type { PredictParameters } from '../generated/options.js'
import { type FlatOptions, specs } from '../options.js'
import type { Searcher } from '../searcher.js'
import type { SearchOptions, XLinear } from '../xlinear.js'
import { assignment, count, DENSE, either, fallback, isSaid, parse, type RowsOptions } from './common.js'
import { readLabelIds } from './files.js'

/** What such verbs take. */
export interface SearchedOptions extends RowsOptions {
  model: string
  k: number
  beam: number
  set?: FlatOptions
  allowed?: string
  verify?: boolean
}

/** Adds the model, the rows and the parameters. */
export function searched(command: Command): Command {
  const usual = (name: string) => fallback(specs.predict, name)
  return command
    .requiredOption('--model <file>', 'the model file')
    .option('--x <file.npz>', 'rows × features')
    .option('--dense <file.npy>', DENSE)
    .option('--xmc <file.txt>', 'rows in a text file, plain or gzip, instead of --x')
    .option('--k <n>', 'labels returned of a row', count(1), usual('k'))
    .option('--beam <n>', 'nodes kept of each layer', count(1), usual('beam'))
    .option('--set <key=value>', 'a further parameter: scores, floor', assignment)
    .option('--verify', "compare the model's bytes with its checksums first; reads the whole file")
    .option('--allowed <file.txt>', 'search these labels alone: their numbers, one a line')
}

/** The parameters of a search and the labels that it is narrowed to, refused before gigabytes are read. */
export async function searchOf(
  model: XLinear,
  { allowed }: SearchedOptions,
  parameters: PredictParameters,
): Promise<{ search: SearchOptions; searcher: Searcher }> {
  const labels = allowed === undefined ? undefined : await readLabelIds(allowed, model.info.labels)
  const search = { ...(labels && { allowed: labels }), ...parameters }
  return { search, searcher: model.searcher(search) }
}

/** The parameters of a search, each said once. */
export function parametersOf({ k, beam, set = {} }: SearchedOptions, command: Command): PredictParameters {
  for (const name of ['k', 'beam'])
    if (name in set && isSaid(command, name)) throw either(`--${name}`, `--set ${name}`)
  return { k, beam, ...parse(set, specs.predict) }
}
