// Files of the command line: places to write to, and small texts. Matrices and models are the engine's to read.

import { access, constants, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AquilaError } from '../errors.js'
import { pathOf } from '../io.js'

/** Refuses a file that could not be written in the end, before any work is done for it. */
export async function checkTarget(path: string | undefined): Promise<void> {
  if (path === undefined) return
  const refuse = (why: string) => new AquilaError('IO', `${pathOf(path)}: ${why}`)
  // A link stays a link: what it leads to is written.
  const target = await realpath(pathOf(path)).catch(() => path)
  const there = await stat(target).catch(() => undefined)
  if (there?.isDirectory() || /[/\\]$/.test(path)) throw refuse('is a folder')
  if (there && !there.isFile()) throw refuse('is no regular file')
  const folder = await stat(dirname(target)).catch(() => undefined)
  if (!folder?.isDirectory()) throw refuse('its folder does not exist')
  await access(dirname(target), constants.W_OK).catch(() => {
    throw refuse('its folder may not be written to')
  })
}

/** Node's errors name the file last or not at all. */
async function onFile<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    const [reason] = (error as Error).message.split(', ')
    throw new AquilaError('IO', `${path}: ${reason}`)
  }
}

/** The text of a file. */
export const readText = (path: string): Promise<string> => onFile(path, readFile(path, 'utf8'))

/** Writes a text, whole or not at all. */
export async function writeText(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path)
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
