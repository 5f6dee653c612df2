import * as aquila from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, matrix } from './helpers.js'

// What plain JavaScript may try, though TypeScript forbids it.
type Open = new (...args: unknown[]) => unknown
const open = (name: string) => (aquila as unknown as Record<string, Open>)[name] as Open
const handles = ['Csr', 'Dense', 'Features', 'Groups', 'LabelTree', 'XLinear']

describe('new from outside', () => {
  const x = matrix([[[0, 1]]], 1)

  it.each(handles)('%s is refused, and the error says what to call', async (name) => {
    const made = [undefined, null, 'm.aquila', { rows: 1 }, x, Symbol('aquila'), new Int32Array([0])]
    for (const args of [[], ...made.map((one) => [one]), [Symbol('aquila'), x]]) {
      const error = await expectError(() => new (open(name))(...args), 'INVALID_ARGUMENT', `use ${name}.`)
      // What the message names is there.
      for (const [, of = '', maker = ''] of error.message.matchAll(/(\w+)\.(\w+)/g))
        expect([maker, typeof (open(of) as never)[maker]]).toEqual([maker, 'function'])
    }
  })

  it('is the way of no other class but those with a public constructor', () => {
    const classes = Object.entries(aquila).filter(
      ([, value]) => typeof value === 'function' && /^class /.test(`${value}`),
    )
    const names = classes
      .map(([name]) => name)
      .filter((name) => !['AquilaError', 'Evaluator', 'Ranked'].includes(name))
    expect(names.sort()).toEqual(handles)
  })

  it('makes a Ranked of three arrays alone', async () => {
    for (const wrong of [null, 'x', 3, [], new Map()])
      await expectError(() => new (open('Ranked'))(wrong), 'INVALID_ARGUMENT', /an object for the arrays/)
    await expectError(() => new (open('Ranked'))(), 'INVALID_ARGUMENT', /a Uint32Array for indptr/)
  })
})

describe('holes of arrays', () => {
  const x = matrix([[[0, 1]], [[1, 1]]], 2)
  const holes = new Array(2)

  it('are values of the wrong type', async () => {
    for (const option of ['labelNames', 'featureNames'])
      await expectError(
        () => aquila.XLinear.train(x, x, { [option]: holes }),
        'INVALID_ARGUMENT',
        `a string for ${option}[0] but received undefined`,
      )
    await expectError(() => aquila.LabelTree.fromChain(holes), 'INVALID_ARGUMENT', /a Csr for chain\[0\]/)
    await expectError(() => aquila.evaluate(x, x, { k: holes }), 'INVALID_ARGUMENT', /for k but received/)
  })
})
