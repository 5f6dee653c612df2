// What the verbs share: values from the command line, output, progress.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { AquilaError } from '../errors.js'
import { Groups } from '../groups.js'
import { readNpy, readNpz, readXmc } from '../io.js'
import { type Csr, Features } from '../matrix.js'
import type { ParameterSpec } from '../native/binding.cjs'
import { type CallOptions, type FlatOptions, type Progress, specs } from '../options.js'
import { checkFiles } from './files.js'

/** A whole number from the command line. */
export function count(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() === '' || !Number.isSafeInteger(value) || value < min)
      throw new InvalidArgumentError(`Expected an integer of at least ${min}.`)
    return value
  }
}

/** A number from the command line; the engine knows its range. */
export function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('Expected a number.')
  return value
}

const UNITS: Record<string, number> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }

/** Bytes from the command line: `2G`, `500M`, `1048576`. */
export function bytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec(text.trim())
  const unit = match && UNITS[(match[2] as string).toLowerCase()]
  if (!match || !unit) throw new InvalidArgumentError('Expected a number of bytes such as 500M or 2G.')
  return Math.round(Number(match[1]) * unit)
}

/** Different whole numbers from the command line: `1,3,5`. */
export function counts(text: string): number[] {
  return [...new Set(text.split(',').map(count(1)))]
}

/** Collects `key=value` pairs, each key once; the engine checks both. */
export function assignment(text: string, before: FlatOptions = {}): FlatOptions {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Expected key=value.')
  const key = text.slice(0, at).trim()
  if (Object.hasOwn(before, key)) throw new InvalidArgumentError(`Expected ${key} once.`)
  return { ...before, [key]: text.slice(at + 1).trim() }
}

/** Whether an option was given on the command line rather than by default. */
export function isSaid(command: Command, option: string): boolean {
  return command.getOptionValueSource(option) === 'cli'
}

/** Of two ways to say something both were taken. */
export function either(one: string, other: string): AquilaError {
  return new AquilaError('INVALID_ARGUMENT', `Expected either ${one} or ${other} but received both`)
}

/** An option that means nothing without another. */
export function beside(needed: string, option: string): AquilaError {
  return new AquilaError('INVALID_ARGUMENT', `Expected ${needed} beside ${option}`)
}

/**
 * Values of the command line are texts: numbers and truth values become what the table says they are. What is no
 * number stays a text for the engine to refuse.
 */
export function parse(pairs: FlatOptions, table: readonly ParameterSpec[]): Record<string, unknown> {
  // Without a prototype every name is a plain key, `__proto__` too.
  const nested: Record<string, unknown> = Object.create(null)
  for (const [name, value] of Object.entries(pairs)) {
    const kind = table.find((spec) => spec.name === name)?.kind
    const text = String(value)
    if ((kind === 'integer' || kind === 'number') && text !== '' && !Number.isNaN(Number(text)))
      nested[name] = Number(text)
    else if (kind === 'boolean' && (text === 'true' || text === 'false')) nested[name] = text === 'true'
    else nested[name] = value
  }
  return nested
}

/** The options that every heavy verb has. */
export function heavy(command: Command): Command {
  return command
    .option('--threads <n>', 'threads to use; 0 takes as many as the machine offers', count(0), 0)
    .addOption(new Option('--json', 'print the result as one JSON object').default(false))
}

/** Adds the limit of memory. */
export function limited(command: Command): Command {
  return command.option(
    '--memory-limit <bytes>',
    "refuse when the forecast passes this, such as 500M or 2G in powers of 1024; 0 means no limit (default: the machine's memory)",
    bytes,
  )
}

/** The limit that is said; without one the library's own holds. */
export const limitOf = ({ memoryLimit }: { memoryLimit?: number }): CallOptions =>
  memoryLimit === undefined ? {} : { memoryLimit }

/** Bytes as a person reads them. */
export function size(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let unit = 0
  let rest = value
  while (rest >= 1000 && unit < units.length - 1) {
    rest /= 1000
    unit++
  }
  return `${unit === 0 || rest >= 100 ? rest.toFixed(0) : rest.toFixed(1)} ${units[unit]}`
}

/** The process's largest memory so far, in bytes. */
export function peakMemory(): number {
  return process.resourceUsage().maxRSS * 1024
}

/** Prints the result: as JSON, or as `name  value` lines. */
export function print(
  json: boolean,
  result: Record<string, unknown>,
  lines: [string, string][],
  to: NodeJS.WritableStream = process.stdout,
): void {
  if (json) {
    to.write(`${JSON.stringify(result)}\n`)
    return
  }
  const width = Math.max(...lines.map(([name]) => name.length))
  for (const [name, value] of lines) to.write(`${name.padEnd(width)}  ${value}\n`)
}

function line({ stage, done, total, layer, eta }: Progress): string {
  const share = total > 0 ? done / total : 1
  const bar = '#'.repeat(Math.round(share * 24)).padEnd(24, '.')
  const left = eta === undefined || done >= total ? '' : `  ${Math.ceil(eta)} s left`
  const which = layer === undefined || done >= total ? '' : `  layer ${layer}`
  return `${stage.padEnd(12)} [${bar}] ${(share * 100).toFixed(0).padStart(3)} %${which}${left}`
}

/** As much of a line as a terminal of so many columns shows in one row: what wraps cannot be written over. */
export function fitting(text: string, columns: number | undefined): string {
  return columns ? text.slice(0, Math.max(columns - 1, 0)) : text
}

/** Shows progress on stderr: the forecast of memory, a bar on a terminal, a line for each finished stage otherwise, nothing with `--json`. */
export function progress(json: boolean): { show?: (progress: Progress) => void; end(): void } {
  if (json) return { end() {} }
  const terminal = process.stderr.isTTY
  let open = false
  let finished = ''
  return {
    show(progress) {
      if (progress.forecastBytes !== undefined) {
        process.stderr.write(
          `forecast: ${size(progress.forecastBytes)} of memory at most for the engine, beside what Node.js takes\n`,
        )
      } else if (terminal) {
        process.stderr.write(`\r\x1b[K${fitting(line(progress), process.stderr.columns)}`)
        open = true
      } else if (progress.done >= progress.total && progress.stage !== finished) {
        finished = progress.stage
        process.stderr.write(`${progress.stage}: done after ${progress.seconds.toFixed(1)} s\n`)
      }
    },
    end() {
      if (open) process.stderr.write('\n')
      open = false
    },
  }
}

/** What `--dense` is. */
export const DENSE = 'dense block beside the sparse rows, or alone'

/** Where rows come from. */
export interface RowsOptions {
  x?: string
  dense?: string
  xmc?: string
}

/** Reads rows, and their labels where the file has them. */
export async function readRows(
  { x, dense, xmc }: RowsOptions,
  call: { threads: number; signal?: AbortSignal },
): Promise<{ x: Csr | Features; y?: Csr }> {
  if (x !== undefined && xmc !== undefined) throw either('--x', '--xmc')
  if (x === undefined && xmc === undefined && dense === undefined)
    throw new AquilaError('INVALID_ARGUMENT', 'Expected --x, --xmc or --dense')
  const data: { x?: Csr; y?: Csr } =
    xmc !== undefined ? await readXmc(xmc, call) : x !== undefined ? { x: await readNpz(x, call) } : {}
  if (dense === undefined) return { ...data, x: data.x as Csr }
  const block = await readNpy(dense, call)
  const features = Features.from(data.x, block)
  data.x?.close()
  block.close()
  return { ...data, x: features }
}

/** What verbs on labels of groups take. */
export interface GroupedOptions extends RowsOptions {
  groups: string
  bags: string
  out: string
  memoryLimit?: number
  threads: number
  json: boolean
}

/** Adds the inputs of such a verb. */
export function grouped(command: Command): Command {
  return limited(
    command
      .option('--x <file.npz>', 'samples × features')
      .option('--dense <file.npy>', DENSE)
      .requiredOption('--groups <file.npz>', 'samples × groups')
      .requiredOption('--bags <file.npz>', "the groups' labels, groups × labels"),
  )
}

/** Adds how embeddings of labels are learned. */
export function embeddingOptions(command: Command): Command {
  const usual = (name: string) => fallback(specs.assign, name)
  return command
    .option(
      '--iterations <n>',
      'rounds of the embeddings; 0 takes the mean of all samples',
      count(0),
      usual('iterations'),
    )
    .option('--step <n>', 'how far each round goes', number, usual('step'))
    .option('--no-normalize', 'compare rows as they are, not all scaled to length 1')
}

/** Reads groups and their labels. */
export async function readGroups(
  { groups, bags }: { groups: string; bags: string },
  call: CallOptions,
): Promise<{ groups: Groups; bags: Csr }> {
  return { groups: Groups.fromMemberships(await readNpz(groups, call)), bags: await readNpz(bags, call) }
}

/** What such a verb works on. */
export interface Grouped {
  x: Features
  groups: Groups
  bags: Csr
}

/** Reads the inputs of such a verb, once it is sure that the result can be written, and works with progress shown. */
export async function onGroups<T>(
  options: GroupedOptions,
  command: Command,
  signal: AbortSignal,
  work: (given: Grouped, call: CallOptions) => Promise<T>,
): Promise<T & { size: number }> {
  const call = { threads: options.threads, signal }
  await checkFiles(command, '--out', '--embeddings', '--relevance')
  const { x } = await readRows(options, call)
  const { groups, bags } = await readGroups(options, call)
  const { show, end } = progress(options.json)
  const found = await work({ x, groups, bags }, { ...call, ...limitOf(options), onProgress: show }).finally(
    end,
  )
  return { ...found, size: groups.size }
}

/** The engine's default of a number. */
export function fallback(table: readonly ParameterSpec[], name: string): number {
  return Number(table.find((spec) => spec.name === name)?.default)
}

/**
 * Refuses an option that is given twice on the command line though it has one value: Commander would take the last one
 * and say nothing. `--set`, whose values are collected, and options of several values may be repeated.
 */
export function refuseRepeated(program: Command): void {
  for (const command of program.commands)
    for (const option of command.options) {
      const single =
        (option.required || option.optional) && !option.variadic && option.parseArg !== assignment
      if (!single) continue
      let given = false
      command.on(`option:${option.name()}`, () => {
        if (given)
          throw new AquilaError('INVALID_ARGUMENT', `Expected ${option.long} once but received it twice`)
        given = true
      })
    }
}
