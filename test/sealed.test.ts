import { inspect } from 'node:util'
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

describe('a copy to another thread', () => {
  const x = matrix([[[0, 1]], [[1, 1]]], 2)
  const dense = aquila.Dense.from({ rows: 1, cols: 1, values: new Float32Array(1) })
  const made = async (): Promise<[string, object, string][]> => {
    const model = await aquila.XLinear.train(x, x)
    return [
      ['Csr', x, 'toArrays()'],
      ['Dense', dense, 'toArray()'],
      ['Features', aquila.Features.from(undefined, dense), 'both parts'],
      ['Csr', aquila.Groups.from(new Int32Array([0])), 'toArrays()'],
      ['LabelTree', model.tree(), 'toJson()'],
      ['XLinear', model, 'open its file in the other thread'],
      ['Searcher', model.searcher(), 'make one in the other thread'],
      ['Evaluator', new aquila.Evaluator(), 'in one thread'],
    ]
  }

  it('is refused with the reason and what to send instead', async () => {
    for (const [name, object, cure] of await made())
      for (const message of [object, { deep: [object] }])
        for (const copy of [structuredClone, (m: object) => new MessageChannel().port1.postMessage(m)]) {
          let caught: unknown
          try {
            copy(message)
          } catch (error) {
            caught = error
          }
          expect(caught).toMatchObject({ name: 'DataCloneError', message: expect.stringContaining(name) })
          expect((caught as Error).message).toContain(cure)
          expect((caught as Error).message).toMatch(/native memory.*could not be cloned/)
        }
  })

  it('is made of what predictions are', async () => {
    const model = await aquila.XLinear.train(x, x)
    const top = await model.predict(x, { k: 1 })
    expect(new aquila.Ranked(structuredClone(top))).toEqual(top)
    expect(structuredClone(model.info)).toEqual(model.info)
    expect(structuredClone(x.toArrays())).toEqual(x.toArrays())
  })

  it('leaves no trace where objects are shown', async () => {
    const [, , , , , [, model = {}] = [], [, searcher = {}] = []] = await made()
    expect(inspect(x)).toBe('Csr { native: Matrix {} }')
    expect(inspect({ a: { b: { c: { x } } } })).toBe('{ a: { b: { c: [Object] } } }')
    expect(inspect({ a: { b: { x } } })).toBe('{ a: { b: { x: [Csr] } } }')
    expect(inspect(model)).toMatch(/^XLinear \{\n {2}report: \{/)
    expect(inspect(searcher)).toBe(
      'Searcher { labels: Uint32Array(2) [ 0, 0 ], scores: Float32Array(2) [ 0, 0 ] }',
    )
    expect(inspect([model, searcher], { depth: 9 })).not.toMatch(/clone/i)
    expect(inspect(new aquila.Evaluator())).toBe('Evaluator {}')
    expect(JSON.stringify([x, new aquila.Evaluator()])).toBe('[{"native":{}},{}]')
  })

  it('leaves no trace in what is wrong with options', async () => {
    const tree = aquila.LabelTree.fromJson('{ "aquilaTree": 1, "labels": 1, "root": [0] }') as never
    await expectError(
      () => aquila.trainParameters(tree),
      'INVALID_ARGUMENT',
      /an object for options but received LabelTree/,
    )
    await expectError(
      () => aquila.trainParameters({ trees: tree } as never),
      'UNKNOWN_OPTION',
      /trees\b(?!\.)/,
    )
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
