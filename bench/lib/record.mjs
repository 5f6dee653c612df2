// Dated results: where and with what they were measured, as files that appear whole.

import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { commit, machine, today, versions } from './machine.mjs'

/** The head of every result. */
export const circumstances = (command, runtime) => ({
  format: 1,
  date: today(),
  command,
  commit: commit(),
  machine: machine(),
  versions: versions(runtime),
})

/** The same in words. */
export function inWords({ date, commit, machine, versions }) {
  const tree = commit.dirty === false ? '' : ' with uncommitted changes'
  const gigabytes = (machine.memoryBytes / 2 ** 30).toFixed(0)
  return [
    `Measured on ${date} at commit ${commit.hash.slice(0, 10)}${tree}; ${machine.cpu}, ${machine.cores} cores, ${gigabytes} GB, ${machine.system}.`,
    `aquila ${versions.aquila} (${versions.simd}), Node ${versions.node}, ${versions.rust?.replace(/ \(.*/, '')}.`,
  ].join('\n')
}

/** A Markdown table; the first column is text, the others are numbers. Cells are padded as the formatter wants it. */
export function table(head, rows) {
  const widths = head.map((_, i) => Math.max(3, ...[head, ...rows].map((cells) => cells[i].length)))
  const padded = (cells) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [padded(head), rule, ...rows.map(padded)].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** Writes each text to `base` with its ending. */
export async function record(base, texts) {
  await mkdir(dirname(base), { recursive: true })
  for (const [ending, text] of Object.entries(texts)) {
    await writeFile(`${base}.${ending}.part`, text)
    await rename(`${base}.${ending}.part`, `${base}.${ending}`)
  }
  return base
}

/** Mean and standard deviation; the latter 0 of one. */
export function summary(values) {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length
  const squares = values.reduce((sum, v) => sum + (v - mean) ** 2, 0)
  return { mean, sd: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0 }
}
