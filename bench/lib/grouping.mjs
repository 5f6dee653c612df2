// How samples of a set get into groups, by rules with names: `random:4`, `kmeans:8` (clusters of at most 8),
// `kmeans:8+0.25` (a quarter of the clustered samples change places), `natural` (the groups that the data has).

import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { Refusal } from './command.mjs'

/** The rules of the paper's tables and pictures, and the natural groups. */
export const RULES = [
  ...[2, 4, 6, 8, 10].map((size) => `random:${size}`),
  ...[4, 8, 16, 32, 64].map((size) => `kmeans:${size}`),
  ...[0.25, 0.5, 0.75, 1].map((noise) => `kmeans:8+${noise}`),
  'natural',
]

/** A rule taken apart. */
export function ruleOf(text) {
  if (text === 'natural') return { kind: 'natural' }
  const [, kind, size, noise = '0'] = /^(random|kmeans):([1-9]\d*)(?:\+(0?\.\d+|1))?$/.exec(text) ?? []
  if (kind === undefined || (kind === 'random' && noise !== '0'))
    throw new Refusal(
      `Expected random:SIZE, kmeans:SIZE, kmeans:SIZE+NOISE or natural for --rules but received ${text}`,
    )
  return { kind, size: Number(size), noise: Number(noise) }
}

/** How often a rule halves all samples: the depth of its clusters. */
export const depthOf = (rows, size) => Math.ceil(Math.log2(rows / size))

/** The group of each sample by its name in the data; `undefined` where there are no natural groups. */
async function naturalGroups(data, name, rows) {
  const path = data && join(data, `${name}.train.jsonl.gz`)
  if (!path || !existsSync(path)) return undefined
  const [ids, of] = [new Map(), []]
  const lines = createInterface({ input: createReadStream(path).pipe(createGunzip()) })
  for await (const line of lines) {
    const { group } = JSON.parse(line)
    if (group === undefined) return undefined
    if (!ids.has(group)) ids.set(group, ids.size)
    of.push(ids.get(group))
  }
  if (of.length !== rows)
    throw new Refusal(`${path}: ${of.length} samples but the features have ${rows} rows`)
  return Int32Array.from(of)
}

/** The groups of a rule; `undefined` where the set has none by it. */
export async function groupsBy(rule, { Groups, x, name, data }, call) {
  const { kind, size, noise } = ruleOf(rule)
  if (kind === 'random') return Groups.random(x.rows, size, { seed: call.seed })
  if (kind === 'kmeans') return Groups.kmeans(x, { size, noise }, call)
  const of = await naturalGroups(data, name, x.rows)
  return of && Groups.from(of)
}
