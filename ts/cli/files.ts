// Files of the command line: places to write to, and small texts. Matrices and models are the engine's to read.

import {
  access,
  constants,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
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

/** Refuses a file that could not be written in the end, before any work is done for it, and tells its only name. */
async function checkTarget(path: string): Promise<string> {
  const target = await behindLinks(pathOf(path))
  const there = await stat(target).catch(() => undefined)
  if (there?.isDirectory() || /[/\\]$/.test(path)) throw refuse(path, 'is a folder')
  if (there && !there.isFile()) throw refuse(path, 'is no regular file')
  const folder = await stat(dirname(target)).catch(() => undefined)
  if (!folder?.isDirectory()) throw refuse(path, 'its folder does not exist')
  await access(dirname(target), constants.W_OK).catch(() => {
    throw refuse(path, 'its folder may not be written to')
  })
  return join(await realpath(dirname(target)), basename(target))
}

/** Refuses files, by their options, that could not all be written in the end, before any work is done for them. */
export async function checkTargets(targets: Record<string, string | undefined>): Promise<void> {
  const taken = new Map<string, string>()
  for (const [option, path] of Object.entries(targets)) {
    if (path === undefined) continue
    const target = await checkTarget(path)
    const other = taken.get(target)
    if (other)
      throw new AquilaError('INVALID_ARGUMENT', `Expected different files for ${other} and ${option}`)
    taken.set(target, option)
  }
}

/** Node's errors name the file last or not at all. */
async function onFile<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    const [reason] = (error as Error).message.split(', ')
    throw refuse(path, String(reason))
  }
}

/** The text of a file. What is none is refused: whoever opens a pipe waits for its writer, and no signal ends that. */
export async function readText(path: string): Promise<string> {
  const there = await onFile(path, stat(path))
  if (!there.isFile()) throw refuse(path, 'is no regular file')
  return onFile(path, readFile(path, 'utf8'))
}

/** Writes a text, whole or not at all. */
export async function writeText(path: string, text: string): Promise<void> {
  const target = await behindLinks(path)
  const temporary = join(dirname(target), `.aquila-${process.pid}-text.tmp`)
  try {
    await onFile(path, writeFile(temporary, text, { flush: true }))
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
