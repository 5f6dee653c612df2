// Where the parts of a data set lie.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The four files of a set: features and labels, of training and of test. */
export const PARTS = ['X.trn', 'Y.trn', 'X.tst', 'Y.tst']

/** The file of one part. */
export const file = (folder, name, part) => join(folder, `${name}.${part}.npz`)

/** The names of all sets of a folder that have all four files. */
export function setsOf(folder) {
  const there = new Set(readdirSync(folder))
  const names = [...there].filter((name) => name.endsWith('.X.trn.npz')).map((name) => name.slice(0, -10))
  return names.filter((name) => PARTS.every((part) => there.has(`${name}.${part}.npz`))).sort()
}
