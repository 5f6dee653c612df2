// How soon heavy calls on groups end once they are cancelled.

import { Csr, eagle, Groups } from 'aquila-xmc'
import { beforeAll, expect, it } from 'vitest'
import { crowd } from '../bench/lib/crowd.mjs'
import { slowestEnd } from './helpers.js'

let [x, y, bags]: Csr[] = []
let groups: Groups

beforeAll(async () => {
  const set = crowd({ samples: 150_000, labels: 20_000 })
  x = Csr.from(set.x)
  y = Csr.from(set.y)
  groups = Groups.random(x.rows, 10)
  bags = await groups.aggregate(y)
})

const calls: [string, (call: { signal: AbortSignal }) => Promise<unknown>][] = [
  ['aggregate', (call) => groups.aggregate(y as Csr, {}, call)],
  ['union', (call) => eagle.union(groups, bags as Csr, call)],
  ['kmeans', (call) => Groups.kmeans(x as Csr, { size: 4 }, call)],
  ['assign', (call) => eagle.assign(x as Csr, groups, bags as Csr, { iterations: 1000 }, call)],
  ['embed', (call) => eagle.embed(x as Csr, groups, bags as Csr, { dense: false }, call)],
]

it.each(calls)('%s ends within 200 ms', async (_, work) => {
  expect(await slowestEnd([0, 10, 40, 150, 400], (signal) => work({ signal }))).toBeLessThan(200)
})
