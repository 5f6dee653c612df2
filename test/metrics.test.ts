import { Csr, type EvaluateOptions, Evaluator, evaluate, Ranked } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, matrix, problem, random, rowsOf } from './helpers.js'

// Row 0 finds its one label second, row 1 finds both of its labels first.
const y = matrix(
  [
    [[2, 1]],
    [
      [0, 1],
      [1, 1],
    ],
  ],
  3,
)
const scores = matrix(
  [
    [
      [0, 0.9],
      [2, 0.5],
    ],
    [
      [0, 0.8],
      [1, 0.8],
      [2, 0.1],
    ],
  ],
  3,
)
const trainY = matrix([[[2, 1]], [[0, 1]], [[0, 1]], [[0, 1]]], 3)
const ranked = new Ranked({
  indptr: new Uint32Array([0, 2, 5]),
  labels: new Uint32Array([0, 2, 0, 1, 2]),
  scores: new Float32Array([0.9, 0.5, 0.8, 0.8, 0.1]),
})

describe('evaluate', () => {
  it('measures ranked arrays and score matrices alike', async () => {
    const report = await evaluate(ranked, y, { k: [1, 2] })
    expect(report.rows).toBe(2)
    expect(report.precision).toEqual({ 1: 0.5, 2: 0.75 })
    expect(report.recall).toEqual({ 1: 0.25, 2: 1 })
    expect(report.psp).toBeUndefined()
    expect(await evaluate(scores, y, { k: [1, 2] })).toEqual(report)
    expect(Object.keys((await evaluate(scores, y)).precision)).toEqual(['1', '3', '5'])
    expect((await evaluate(scores, y, { k: 1 })).precision).toEqual({ 1: 0.5 })
  })

  it('adds propensity-scored measures', async () => {
    const report = await evaluate(ranked, y, { k: 1, propensity: { trainY } })
    expect(report.psp?.[1]).toBeGreaterThan(0)
    const amazon = await evaluate(ranked, y, { k: 1, propensity: { trainY, dataSet: 'Amazon-670K' } })
    expect(amazon.psp).not.toEqual(report.psp)
    const same = await evaluate(ranked, y, { k: 1, propensity: { trainY, a: 0.6, b: 2.6 } })
    expect(same.psp).toEqual(amazon.psp)
  })

  it('takes the constants of known data sets alone', async () => {
    const psp = async (more: object) =>
      (await evaluate(ranked, y, { k: [1, 2], propensity: { trainY, ...more } })).psp
    for (const dataSet of ['Wikipedia-500K', 'LF-WikiTitles-500K', 'wikilshtc'])
      expect([dataSet, await psp({ dataSet })]).toEqual([dataSet, await psp({ a: 0.5, b: 0.4 })])
    for (const dataSet of ['Amazon670', 'amazon_3m', 'LF-AmazonTitles-131K'])
      expect([dataSet, await psp({ dataSet })]).toEqual([dataSet, await psp({ a: 0.6, b: 2.6 })])
    for (const dataSet of ['AmazonCat-13K', 'Wiki10-31K', 'EURLex-4K', 'LF-WikiSeeAlso-320K'])
      expect([dataSet, await psp({ dataSet })]).toEqual([dataSet, await psp({})])
    for (const dataSet of ['foo', ''])
      await expectError(
        () => psp({ dataSet }),
        'INVALID_ARGUMENT',
        /amazon, wiki, .*give propensity\.a and propensity\.b/,
      )
  })

  it('refuses what does not fit', async () => {
    await expectError(() => evaluate(scores, matrix([[]], 3)), 'SHAPE_MISMATCH')
    await expectError(() => evaluate({} as never, y), 'INVALID_ARGUMENT', /a Ranked or Csr for top/)
    await expectError(() => evaluate(scores, [] as never), 'INVALID_ARGUMENT', /a Csr for y/)
    await expectError(() => evaluate(scores, y, { k: 0 }), 'INVALID_ARGUMENT', /for k but received 0/)
    await expectError(() => evaluate(scores, y, { k: [] }), 'INVALID_ARGUMENT', /at least one rank/)
    await expectError(
      () => evaluate(scores, y, { floors: 1 } as never),
      'UNKNOWN_OPTION',
      /did you mean floor/,
    )
    await expectError(
      () => evaluate(scores, y, { unlabelled: 'drop' } as never),
      'INVALID_ARGUMENT',
      /keep, skip/,
    )
    await expectError(() => evaluate(scores, y, { propensity: {} } as never), 'INVALID_ARGUMENT', /trainY/)
    await expectError(() => evaluate(scores, y, { propensity: { trainY, c: 1 } } as never), 'UNKNOWN_OPTION')
    const twice = { trainY, dataSet: 'Amazon-670K', a: 0.5 }
    await expectError(() => evaluate(scores, y, { propensity: twice }), 'INVALID_ARGUMENT', /received both/)
    const broken = new Ranked({ ...ranked, indptr: new Uint32Array([0, 9, 5]) })
    await expectError(() => evaluate(broken, y), 'UNSORTED_INDICES', /falls from 9 to 5/)
  })

  it('takes an empty test set', async () => {
    const none = Csr.from({
      rows: 0,
      cols: 3,
      indptr: new Uint32Array([0]),
      indices: new Uint32Array(),
      values: new Float32Array(),
    })
    expect((await evaluate(none, none)).precision[1]).toBe(0)
  })
})

describe('Evaluator', () => {
  const { y: truth } = problem({ rows: 400, labels: 30 })
  const next = random(5)
  const guesses = matrix(
    Array.from({ length: 400 }, () => {
      const some = new Set(Array.from({ length: 8 }, () => Math.floor(next() * 30)))
      return [...some].map((label): [number, number] => [label, Math.round(next() * 20) / 20])
    }),
    30,
  )
  const part = (m: Csr, from: number, to: number) => matrix(rowsOf(m).slice(from, to), m.cols)
  const options: EvaluateOptions = { k: [1, 3, 7], floor: 0.2, propensity: { trainY: truth } }

  it.each([
    ['one by one', 1],
    ['by seven', 7],
    ['by a hundred', 100],
    ['at once', 400],
  ])('gives the same report as evaluate for batches %s', async (_, size) => {
    for (const given of [options, {}, { unlabelled: 'skip' } as const]) {
      const evaluator = new Evaluator(given)
      // Some wait for each other, some are asked for at once; matrices may be closed meanwhile.
      const running = []
      for (let from = 0; from < 400; from += size) {
        const [top, y] = [part(guesses, from, from + size), part(truth, from, from + size)]
        running.push(evaluator.add(top, y))
        top.close()
        y.close()
        if (from % 2) await Promise.all(running)
      }
      const report = evaluator.report()
      evaluator.close()
      expect(await report).toEqual(await evaluate(guesses, truth, given))
      await Promise.all(running)
    }
  })

  it('takes ranked arrays, and reports as often as it is asked', async () => {
    const evaluator = new Evaluator({ k: [1, 2] })
    await evaluator.add(ranked, y)
    expect(await evaluator.report()).toEqual(await evaluate(ranked, y, { k: [1, 2] }))
    expect(await evaluator.report()).toEqual(await evaluator.report())
    await evaluator.add(scores, y)
    expect((await evaluator.report()).rows).toBe(4)
  })

  it('reports zeros before the first batch', async () => {
    expect(await new Evaluator({ k: 2 }).report()).toMatchObject({ rows: 0, precision: { 2: 0 } })
    expect(await new Evaluator(options).report()).toMatchObject({ rows: 0, psp: { 7: 0 } })
  })

  it('counts a batch whole or not at all', async () => {
    const evaluator = new Evaluator(options)
    const narrow = matrix([[[0, 1]]], 3)
    // What is refused at first does not say how many labels there are.
    await expectError(() => evaluator.add(narrow, narrow), 'SHAPE_MISMATCH', /weigh 30 labels/)
    const twice = new Ranked({
      indptr: new Uint32Array([0, 1, 3]),
      labels: new Uint32Array([1, 2, 2]),
      scores: new Float32Array(3),
    })
    await expectError(() => evaluator.add(twice, part(truth, 0, 2)), 'DUPLICATE_INDEX', /row 1/)
    const controller = new AbortController()
    const late = evaluator.add(guesses, truth, { signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(late).rejects.toThrow('enough')
    await expectError(() => evaluator.add(guesses, narrow), 'SHAPE_MISMATCH', /weigh 30 labels/)
    await expectError(() => evaluator.add({} as never, truth), 'INVALID_ARGUMENT', /a Ranked or Csr for top/)
    await expectError(() => evaluator.add(guesses, [] as never), 'INVALID_ARGUMENT', /a Csr for y/)
    expect((await evaluator.report()).rows).toBe(0)
    await evaluator.add(guesses, truth)
    await expectError(() => evaluator.add(narrow, narrow), 'SHAPE_MISMATCH', /3 labels but .* had 30/)
    await expectError(() => evaluator.add(guesses, truth, { thread: 1 } as never), 'UNKNOWN_OPTION')
    expect(await evaluator.report()).toEqual(await evaluate(guesses, truth, options))
  })

  it('passes over a signal that comes while rows count', async () => {
    // So many rows that the signal comes now before they count, now while they do.
    const [rows, per] = [100_000, 4]
    const indptr = new Uint32Array(rows + 1).map((_, i) => i * per)
    const labels = new Uint32Array(rows * per).map((_, i) => ((i >> 2) % 250) * 4 + (i % per))
    const values = new Float32Array(rows * per).fill(1)
    const top = new Ranked({ indptr, labels, scores: values })
    const many = Csr.from({ rows, cols: 1000, indptr, indices: labels, values })
    const evaluator = new Evaluator()
    let counted = 0
    const ends = new Set<number>()
    // At once nothing counts yet, after the end all does; what comes between is told by no clock.
    for (const wait of ['none', ...Array(40).keys(), 'all'] as const) {
      const controller = new AbortController()
      const running = evaluator.add(top, many, { signal: controller.signal })
      const ended = running.then(
        () => rows,
        () => 0,
      )
      if (wait === 'all') await ended
      else if (wait !== 'none') await new Promise((resolve) => setTimeout(resolve, wait))
      controller.abort()
      ends.add(await ended)
      counted += await ended
      expect((await evaluator.report()).rows).toBe(counted)
    }
    expect(ends).toEqual(new Set([0, rows]))
  })

  it('refuses options as evaluate does, and any use once it is closed', async () => {
    await expectError(() => new Evaluator({ k: 0 }), 'INVALID_ARGUMENT', /for k but received 0/)
    await expectError(() => new Evaluator({ floors: 1 } as never), 'UNKNOWN_OPTION', /did you mean floor/)
    await expectError(() => new Evaluator({ propensity: {} } as never), 'INVALID_ARGUMENT', /trainY/)
    const evaluator = new Evaluator({ propensity: { trainY: part(truth, 0, 400) } })
    expect(evaluator.isOpen).toBe(true)
    evaluator.close()
    evaluator[Symbol.dispose]()
    expect(evaluator.isOpen).toBe(false)
    await expectError(() => evaluator.add(guesses, truth), 'CLOSED', /the evaluator is closed/)
    await expectError(() => evaluator.report(), 'CLOSED', /the evaluator is closed/)
  })
})
