import { join } from 'node:path'
import { Csr, eagle, Groups, XLinear } from 'aquila-xmc'
import { beforeAll, expect, it } from 'vitest'
import { expectError, folder, problem, script } from './helpers.js'

const path = join(folder(), 'm.aquila')

beforeAll(async () => {
  const { x, y } = problem()
  await (await XLinear.train(x, y)).save(path)
})

const prelude = `
  import { setImmediate as turn } from 'node:timers/promises'
  const path = ${JSON.stringify(path)}
  const n = 100000
  const indptr = new Uint32Array(1001).map((_, i) => i * 100)
  const indices = new Uint32Array(n).map((_, i) => i % 100)
  const values = new Float32Array(n).fill(1)
  const make = () => aquila.Csr.from({ rows: 1000, cols: 140, indptr, indices, values })
  const settle = async () => { for (let i = 0; i < 5; i++) { global.gc?.(); await turn() } }
  const megabytes = () => process.memoryUsage.rss() / 2 ** 20
`

it('does not grow over many calls', async () => {
  const { code, stdout, stderr } = await script(
    `${prelude}
    const x = make()
    const round = async () => {
      for (let i = 0; i < 40; i++) {
        const model = await aquila.XLinear.open(path)
        await model.predict(x, { k: 10 }, { threads: 1, onProgress() {}, signal: new AbortController().signal })
        model.predictOne(x.row(0), { k: 3 })
        await model.predict(make(), {}, { threads: 1 })
        await aquila.XLinear.open('/nowhere').catch(() => {})
        if (i % 2) model.close()
      }
      await settle()
    }
    await round(); await round()
    const before = megabytes()
    for (let i = 0; i < 6; i++) await round()
    console.log(Math.round(megabytes() - before))`,
    ['--expose-gc'],
  )
  expect(stderr).toBe('')
  expect(code).toBe(0)
  // 240 rounds' matrices alone are 200 MB.
  expect(Number(stdout)).toBeLessThan(40)
})

it('lets handles be collected', async () => {
  const { stdout } = await script(
    `${prelude}
    const seen = []
    await (async () => {
      const x = make()
      const model = await aquila.XLinear.open(path)
      const searcher = model.searcher()
      await model.predict(x, {}, { onProgress() {} })
      for (const object of [x, model, searcher, searcher.labels]) seen.push(new WeakRef(object))
    })()
    await settle(); await settle()
    console.log(seen.map((ref) => ref.deref() === undefined).join())`,
    ['--expose-gc'],
  )
  expect(stdout.trim()).toBe('true,true,true,true')
})

it.each([
  ['trees', 'aquila.LabelTree.fromChain([column])'],
  ['evaluators', 'await new aquila.Evaluator({ k: 1 }).add(nothing, row)'],
])('tells V8 of %s as well', async (_, make) => {
  const { stdout } = await script(`${prelude}
    const [many, none, ends] = [1e6, new Uint32Array(), new Uint32Array([0, 1e6])]
    const ones = new Float32Array(many).fill(1)
    const steps = new Uint32Array(many + 1).map((_, i) => i)
    const all = steps.subarray(0, many)
    const row = aquila.Csr.from({ rows: 1, cols: many, indptr: ends, indices: all, values: ones })
    const zeros = new Uint32Array(many)
    const column = aquila.Csr.from({ rows: many, cols: 1, indptr: steps, indices: zeros, values: ones })
    const nothing = new aquila.Ranked({ indptr: new Uint32Array(2), labels: none, scores: new Float32Array() })
    const before = megabytes()
    for (let i = 0; i < 200; i++) {
      ${make}
      await turn()
    }
    console.log(Math.round(megabytes() - before))`)
  // Kept, they would take 800 MB.
  expect(Number(stdout)).toBeLessThan(400)
})

it('tells V8 of native memory, so that forgotten handles are collected without being asked', async () => {
  const { stdout } = await script(`${prelude}
    const wide = new Uint32Array(1e6).map((_, i) => i)
    const ones = new Float32Array(1e6).fill(1)
    const ends = new Uint32Array([0, 1e6])
    for (let i = 0; i < 200; i++) {
      aquila.Csr.from({ rows: 1, cols: 1e6, indptr: ends, indices: wide, values: ones })
      await turn()
    }
    console.log(Math.round(megabytes()))`)
  // Kept, they would take 1.6 GB.
  expect(Number(stdout)).toBeLessThan(800)
})

it('refuses by itself what no machine could hold', async () => {
  const n = 1e6
  const labels = 1e5
  // Everybody in one group, which has all labels: 10^11 pairs.
  const ones = (n: number) => new Float32Array(n).fill(1)
  const all = (n: number) => Uint32Array.from({ length: n }, (_, i) => i)
  const groups = Groups.fromMemberships(
    Csr.from({ rows: n, cols: 1, indptr: all(n + 1), indices: new Uint32Array(n), values: ones(n) }),
  )
  const bags = Csr.from({
    rows: 1,
    cols: labels,
    indptr: Uint32Array.of(0, labels),
    indices: all(labels),
    values: ones(labels),
  })
  await expectError(() => eagle.union(groups, bags), 'MEMORY_LIMIT', /1\.\d TB, more than the limit of/)
  const x = Csr.from({
    rows: n,
    cols: 3,
    indptr: all(n + 1),
    indices: all(n).map((i) => i % 3),
    values: ones(n),
  })
  await expectError(() => eagle.refine(x, groups, bags), 'MEMORY_LIMIT')
  for (const method of ['union', 'refine'] as const)
    await expectError(() => XLinear.trainGroups(x, groups, bags, { group: { method } }), 'MEMORY_LIMIT')
})

it('has one limit for groups too', async () => {
  const { x, y } = problem()
  const tight = { memoryLimit: 1000 }
  const groups = Groups.random(x.rows, 4)
  const bags = await groups.aggregate(y)
  await expectError(() => Groups.kmeans(x, {}, tight), 'MEMORY_LIMIT', /clustering/)
  await expectError(() => groups.aggregate(y, {}, tight), 'MEMORY_LIMIT', /labels of groups/)
  await expectError(() => eagle.union(groups, bags, tight), 'MEMORY_LIMIT', /union/)
  expect((await eagle.union(groups, bags, { memoryLimit: 0 })).rows).toBe(x.rows)
})
