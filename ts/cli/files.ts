// Files of the command line: places to write to, and small texts. Matrices and models are the engine's to read.

import { randomUUID } from 'node:crypto'
import {
  access,
  chmod,
  constants,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, extname, isAbsolute, join } from 'node:path'
import type { Command } from 'commander'
import { AquilaError } from '../errors.js'
import { pathOf } from '../io.js'

/** Symbolic links followed one after the other, as many as the engine follows. */
const LINKS = 40

const refuse = (path: string, why: string) => new AquilaError('IO', `${path}: ${why}`)

/** What a path leads to in the end, whether it is there or not: a link stays a link, its target is written. */
async function behindLinks(path: string): Promise<string> {
  let target = path
  for (let n = 0; n < LINKS; n++) {
    const next = await readlink(target).catch(() => undefined)
    if (next === undefined) return target
    // Not shortened as text: what stands above a folder that is itself a link, the system alone knows.
    target = isAbsolute(next) ? next : `${dirname(target)}/${next}`
  }
  throw refuse(path, 'its symbolic links lead to no end')
}

/** Makes a file in a folder and takes it away again: for the first user the rights of a folder say nothing. */
async function probe(path: string, folder: string): Promise<void> {
  const made = join(folder, `.aquila-${process.pid}-probe-${randomUUID()}.tmp`)
  try {
    await writeFile(made, '', { flag: 'wx' })
  } catch (error) {
    throw refuse(path, `its folder cannot be written to: ${reasonOf(error)}`)
  }
  await rm(made, { force: true })
}

/** Refuses a read-only file. The first user may write to any, and means it by the mark alone. */
async function checkRights(path: string, target: string, mode: number): Promise<void> {
  const writable = access(target, constants.W_OK).then(
    () => (mode & 0o222) !== 0,
    () => false,
  )
  if (!(await writable)) throw refuse(path, 'is read-only: make it writable, or name another file')
}

/** Refuses a file that could not be written in the end, before any work is done for it, and tells its only name. */
async function checkTarget(path: string): Promise<string> {
  const target = await behindLinks(pathOf(path))
  const there = await stat(target).catch(() => undefined)
  if (there?.isDirectory() || /[/\\]$/.test(path)) throw refuse(path, 'is a folder')
  if (there && !there.isFile()) throw refuse(path, 'is no regular file')
  if (there) await checkRights(path, target, there.mode)
  const folder = await stat(dirname(target)).catch(() => undefined)
  if (!folder?.isDirectory()) throw refuse(path, 'its folder does not exist')
  await probe(path, dirname(target))
  return there ? realpath(target) : join(await realpath(dirname(target)), basename(target))
}

interface Named {
  /** The option, or the argument, as the help has it. */
  option: string
  path: string
  /** How the names of such files end; none where they may be any. */
  endings: string[]
}

/** The files that a command was given: its help calls them `<file>`, or `<file.npz>` for the ending of their names. */
function filesOf(command: Command): Named[] {
  const given = command.opts()
  const named = command.options.flatMap((option): Named[] => {
    if (!option.flags.includes('<file')) return []
    const endings = [...option.flags.matchAll(/file(\.\w+)/g)].map(([, ending]) => ending as string)
    const paths: string[] = [given[option.attributeName()] ?? []].flat()
    return paths.map((path) => ({ option: option.long as string, path, endings }))
  })
  const places = command.registeredArguments.map((argument, i): Named => {
    return { option: `<${argument.name()}>`, path: command.args[i] as string, endings: [] }
  })
  return [...places, ...named]
}

/** Whether a name ends so; arrays may be packed once more. */
const endsIn = (path: string, ending: string) =>
  [ending, ...(ending.startsWith('.np') ? [`${ending}.gz`] : [])].some((e) => path.toLowerCase().endsWith(e))

/** Whether a file is a NumPy or SciPy one by its name. */
export const isArray = (path: string, kind: 'npy' | 'npz') => endsIn(path, `.${kind}`)

/**
 * Looks at the files of a command before any work is done for it. Refuses results, by their options, whose names say
 * another format than theirs, that could not be written in the end, or that would take the place of one another or of
 * what is read.
 */
export async function checkFiles(command: Command, ...targets: string[]): Promise<void> {
  const taken = new Map<string, string>()
  const files = filesOf(command)
  for (const { option, path } of files.filter((file) => !targets.includes(file.option))) {
    const there = await realpath(path).catch(() => undefined)
    if (there !== undefined) taken.set(there, option)
  }
  for (const { option, path, endings } of files.filter((file) => targets.includes(file.option))) {
    if (endings.length > 0 && extname(path) !== '' && !endings.some((ending) => endsIn(path, ending)))
      throw new AquilaError(
        'INVALID_ARGUMENT',
        `Expected a name in ${endings.join(' or ')} for ${option} but received ${path}`,
      )
    const target = await checkTarget(path)
    const other = taken.get(target)
    if (other)
      throw new AquilaError('INVALID_ARGUMENT', `Expected different files for ${other} and ${option}`)
    taken.set(target, option)
  }
}

/** Node's errors name the file last or not at all. */
const reasonOf = (error: unknown) => String((error as Error).message.split(', ')[0])

async function onFile<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw refuse(path, reasonOf(error))
  }
}

/**
 * The text of a file, without the byte-order mark that some editors put before it. What is no file is refused: whoever
 * opens a pipe waits for its writer, and no signal ends that.
 */
export async function readText(path: string): Promise<string> {
  const there = await onFile(path, stat(path))
  if (!there.isFile()) throw refuse(path, 'is no regular file')
  return (await onFile(path, readFile(path, 'utf8'))).replace(/^\uFEFF/, '')
}

/** Makes something of what files hold; what is wrong with that names them. */
export function made<T>(paths: string[], make: () => T): T {
  try {
    return make()
  } catch (error) {
    const code = error instanceof AquilaError ? error.code : 'PARSE'
    throw new AquilaError(code, `${paths.join(', ')}: ${(error as Error).message}`, { cause: error })
  }
}

/** Writes a text, whole or not at all. A file that it replaces leaves it its rights. */
export async function writeText(path: string, text: string): Promise<void> {
  const target = await behindLinks(path)
  const there = await stat(target).catch(() => undefined)
  if (there) await checkRights(path, target, there.mode)
  const temporary = join(dirname(target), `.aquila-${process.pid}-text.tmp`)
  try {
    await onFile(path, writeFile(temporary, text, { flush: true, ...(there && { mode: 0o600 }) }))
    if (there) await onFile(path, chmod(temporary, there.mode & 0o7777))
    await onFile(path, rename(temporary, target))
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Names from a file, one a line; none without a file. */
export async function readNames(path: string | undefined): Promise<string[] | undefined> {
  if (path === undefined) return undefined
  const lines = (await readText(path)).split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** Names of labels from a file, one a line, each another: of two alike nobody could tell which label is meant. */
export async function readLabelNames(path: string | undefined): Promise<string[] | undefined> {
  const names = await readNames(path)
  const lines = new Map<string, number>()
  names?.forEach((name, i) => {
    const line = lines.get(name)
    if (line !== undefined)
      throw new AquilaError(
        'PARSE',
        `${path}:${i + 1}: the label name ${JSON.stringify(name)} already stands in line ${line}: give each label a name of its own`,
      )
    lines.set(name, i + 1)
  })
  return names
}

/** Numbers of labels from a file, one a line, in any order. */
export async function readLabelIds(path: string, labels: number): Promise<Uint32Array> {
  const lines = (await readNames(path)) as string[]
  const ids = lines.map((line, i) => {
    if (/^\s*\d+\s*$/.test(line) && Number(line) < labels) return Number(line)
    throw new AquilaError(
      'PARSE',
      `${path}:${i + 1}: Expected a label below ${labels} but received "${line}"`,
    )
  })
  return Uint32Array.from(new Set(ids)).sort()
}
