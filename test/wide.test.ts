// Matrices of two entries and as many columns as ids allow, in processes that may not take much memory: every call ends
// with a result or with an error that says what there is too little of.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folder, root } from './helpers.js'

const dir = folder()

/** Runs a piece of a module in a process of its own that may map so many kilobytes. */
function within(
  kilobytes: number,
  code: string,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const prelude = `import * as aquila from ${JSON.stringify(join(root, 'dist/index.js'))}
    const { Csr, Dense, Features, Groups, XLinear, eagle, evaluate, Evaluator, forecast, LabelTree } = aquila\n`
  const child = spawn(
    'sh',
    [
      '-c',
      `ulimit -v ${kilobytes}; exec "$0" "$@"`,
      process.execPath,
      '--input-type=module',
      '--eval',
      prelude + code,
    ],
    { cwd: dir },
  )
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (part) => (stdout += part))
  child.stderr.on('data', (part) => (stderr += part))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })))
}

// Four rows; three columns in use of all that there can be.
const wide = `
  const cols = 2 ** 32 - 1
  const make = (cols, indices) => Csr.from({ rows: 4, cols, indptr: new Uint32Array([0, 1, 2, 3, 4]),
    indices: new Uint32Array(indices), values: new Float32Array([1, 1, 1, 1]) })
  const x = make(cols, [0, 7, cols - 1, 7])
  const y = make(cols, [1, cols - 1, 1, cols - 2])
  const [fewX, fewY] = [make(3, [0, 1, 2, 1]), make(3, [0, 2, 0, 1])]
  const groups = Groups.from(new Int32Array([0, 0, 1, 1]))
  const call = async (name, work) => {
    try { await work(); console.log(name, 'RESULT') }
    catch (e) { console.log(name, e instanceof aquila.AquilaError ? e.code : 'FOREIGN ' + e.message) }
  }
`

const calls = `
  const bags = await groups.aggregate(y, {}, limits)
  const fewBags = await groups.aggregate(fewY, {}, limits)
  for (const [nameX, ofX] of [['wide', x], ['few', fewX]]) {
    for (const [nameB, ofB, ofY] of [['wide', bags, y], ['few', fewBags, fewY]]) {
      if (nameX === 'few' && nameB === 'few') continue
      const of = nameX + ' ' + nameB
      const [one, group] = [{ ...limits, threads: 2 }, (method) => ({ group: { method } })]
      await call('assign ' + of, () => eagle.assign(ofX, groups, ofB, {}, one))
      await call('assignKept ' + of, () => eagle.assign(ofX, groups, ofB, { embeddings: true }, one))
      await call('embed ' + of, () => eagle.embed(ofX, groups, ofB, {}, one))
      await call('embedDense ' + of, () => eagle.embed(ofX, groups, ofB, { dense: true }, one))
      await call('refine ' + of, () => eagle.refine(ofX, groups, ofB, {}, one))
      await call('advise ' + of, () => groups.advise(ofX, ofB, one))
      for (const method of ['union', 'eagle', 'refine'])
        await call('trainGroups ' + method + ' ' + of, () => XLinear.trainGroups(ofX, groups, ofB, group(method), one))
      await call('train ' + of, () => XLinear.train(ofX, ofY, {}, one))
      await call('forecast ' + of, () => forecast(ofX, ofY, {}, one))
    }
  }
  await call('union', () => eagle.union(groups, bags, limits))
  await call('kmeans', () => Groups.kmeans(x, { size: 2 }, limits))
  await call('aggregate', () => groups.aggregate(y, { merge: 'set' }, limits))
  await call('labelVectors', () => XLinear.train(fewX, fewY, { labelVectors: Csr.from({ rows: 3, cols,
    indptr: new Uint32Array([0, 1, 2, 3]), indices: new Uint32Array([7, cols - 1, 0]),
    values: new Float32Array([1, 1, 1]) }) }, limits))
  await call('negatives', () => XLinear.train(fewX, fewY, { negatives: y }, limits))
  const many = make(10e6, [1, 2, 3, 9e6])
  await call('trainY of many', () => evaluate(many, many, { propensity: { trainY: many } }, limits))
  await call('evaluate', () => evaluate(y, y, {}, limits))
  await call('trainY', () => evaluate(y, y, { propensity: { trainY: y } }, limits))
  await call('report', () => new Evaluator({ propensity: { trainY: y } }).report(limits))
  await call('predict', async () => (await XLinear.train(fewX, fewY)).predict(x, {}, limits))
  await call('memberships', () => Groups.fromMemberships(x).aggregate(fewY, {}, limits))
  await call('chain', () => LabelTree.fromChain([make(cols, [0, 0, 0, 0])]))
  const most = Groups.from(new Int32Array([0, 2 ** 28 - 1, -1, 5]))
  await call('groups', () => most.aggregate(y, {}, limits))
  await call('random', () => Groups.random(2 ** 32 - 1, 1))
  await call('empty rows', () => Features.from(undefined, Dense.from({ rows: cols, cols: 0, values: new Float32Array(0) })))
  await call('writeNpz', () => aquila.writeNpz('x.npz', x))
  await call('readNpz', () => aquila.readNpz('x.npz'))
  await call('writeXmc', () => aquila.writeXmc('x.txt', x, y))
  await call('readXmc', () => aquila.readXmc('x.txt'))
  await call('readLibsvm', () => aquila.readLibsvm('x.svm', { features: cols, labels: cols }))
`

describe.skipIf(process.platform !== 'linux')('columns that nobody has', () => {
  for (const [name, limits] of [
    ['with the machine as the limit', '{}'],
    ['without a limit', '{ memoryLimit: 0 }'],
    ['with a small limit', '{ memoryLimit: 100e6 }'],
  ] as const)
    it(`never end the process, ${name}`, async () => {
      const { code, stdout, stderr } = await within(3_000_000, `${wide}const limits = ${limits}\n${calls}`)
      expect(stderr).toBe('')
      expect(code, stdout).toBe(0)
      const ended = new Map(
        stdout
          .trim()
          .split('\n')
          .map((line) => /^(.*) (\S+)$/.exec(line)?.slice(1) as [string, string]),
      )
      const short = /^(MEMORY_LIMIT|OUT_OF_MEMORY)$/
      for (const [call, how] of ended) {
        if (
          /^(assign|refine|advise) |^(union|kmeans|aggregate|labelVectors|forecast|writeNpz|readNpz|writeXmc|readXmc)/.test(
            call,
          )
        )
          expect(how, call).toBe('RESULT')
        // What has a row, a counter or a classifier for each.
        if (
          /^(assignKept|embed\w*|trainGroups \w+|train) \w+ wide$|^(trainGroups \w+|train) wide|^(evaluate|trainY|report|random|empty rows)$/.test(
            call,
          )
        )
          expect(how, call).toMatch(short)
        expect(how, call).toMatch(/^[A-Z_]+$/)
      }
      expect(ended.get('trainY of many')).toBe(limits.includes('100e6') ? 'MEMORY_LIMIT' : 'RESULT')
      expect(ended.get('negatives')).toBe('SHAPE_MISMATCH')
      expect(ended.get('memberships')).toBe('INVALID_ARGUMENT')
      expect(ended.size).toBe(3 * 11 + 20)
    })

  it('and matrices without end are refused with a code', async () => {
    for (const [what, make] of [
      ['Csr', 'Csr.from({ rows: 1, cols: n, indptr: new Uint32Array([0, n]), indices, values })'],
      [
        'unsorted Csr',
        'Csr.from({ rows: 1, cols: n, indptr: new Uint32Array([0, n]), indices, values, unsorted: true })',
      ],
      ['Dense', 'Dense.from({ rows: 1, cols: n, values })'],
      ['small Dense', 'Dense.from({ rows: 1, cols: 20000, values: values.subarray(0, 20000) })'],
    ] as const) {
      const { code, stdout, stderr } = await within(
        1_500_000,
        `const n = 1e6
        const indices = new Uint32Array(n).map((_, i) => i)
        const values = new Float32Array(n)
        const kept = []
        try { for (;;) kept.push(${make}) }
        catch (e) { console.log(e.code, kept.length > 10) }`,
      )
      expect({ code, stdout, stderr }, what).toEqual({ code: 0, stdout: 'OUT_OF_MEMORY true\n', stderr: '' })
    }
  })
})
