// Predictions as text on standard output: a line for each row, or an array of JSON.

import { once } from 'node:events'
import type { Ranked } from '../ranked.js'

/** Rows that are turned into text at a time. */
const PIECE = 1_000

/** The shortest decimal that reads back as this 32-bit float. */
export function shortest(value: number): string {
  for (let digits = 6; digits < 9; digits++) {
    const text = value.toPrecision(digits)
    if (Math.fround(Number(text)) === value) return String(Number(text))
  }
  return String(Number(value.toPrecision(9)))
}

/** Writes to standard output no faster than it is read. */
async function write(text: string, signal: AbortSignal): Promise<void> {
  if (!process.stdout.write(text))
    await once(process.stdout, 'drain', { signal }).catch((error) => {
      throw signal.aborted ? signal.reason : error
    })
  signal.throwIfAborted()
}

/** The entries of one row, best first. */
function entries(
  { indptr, labels, scores }: Ranked,
  row: number,
  entry: (label: number, score: string) => string,
): string[] {
  const all: string[] = []
  for (let i = indptr[row] as number; i < (indptr[row + 1] as number); i++)
    all.push(entry(labels[i] as number, shortest(scores[i] as number)))
  return all
}

/** Writes all rows, each followed or joined as the format says. */
async function writeRows(top: Ranked, signal: AbortSignal, text: (row: number) => string): Promise<void> {
  for (let from = 0; from < top.rows; from += PIECE) {
    let piece = ''
    for (let row = from; row < Math.min(from + PIECE, top.rows); row++) piece += text(row)
    await write(piece, signal)
  }
}

/** A line for each row: `label:score` pairs, best first, with a space between them. */
export async function writeLines(top: Ranked, signal: AbortSignal): Promise<void> {
  await writeRows(
    top,
    signal,
    (row) => `${entries(top, row, (label, score) => `${label}:${score}`).join(' ')}\n`,
  )
}

/**
 * One JSON object with these fields, and in `predictions` a list for each row of `[label, score]` pairs, best first. It
 * is written piece by piece, for all of it may be longer than a string can be.
 */
export async function writeJson(
  fields: Record<string, unknown>,
  top: Ranked,
  signal: AbortSignal,
): Promise<void> {
  await write(`${JSON.stringify(fields).slice(0, -1)},"predictions":[`, signal)
  await writeRows(
    top,
    signal,
    (row) => `${row > 0 ? ',' : ''}[${entries(top, row, (label, score) => `[${label},${score}]`).join(',')}]`,
  )
  await write(']}\n', signal)
}
