import { Csr, evaluate, Ranked } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, matrix } from './helpers.js'

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
