import { trainGroupsParameters, trainParameters, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, learned, matrix } from './helpers.js'

const { data, model } = await learned()

describe('options', () => {
  const endless: Record<string, unknown> = {}
  endless.tree = endless
  const bad: [string, unknown, Parameters<typeof expectError>[1], RegExp | string][] = [
    [
      'an unknown name',
      { tree: { maxLeav: 3 } },
      'UNKNOWN_OPTION',
      /tree\.maxLeav; did you mean tree\.maxLeaf\?/,
    ],
    ['an unknown group', { trees: { maxLeaf: 3 } }, 'UNKNOWN_OPTION', /trees\.maxLeaf/],
    ['an unknown name without a group', { maxLeaf: 3 }, 'UNKNOWN_OPTION', /maxLeaf/],
    ['an unknown object', { plans: null }, 'UNKNOWN_OPTION', /plans/],
    [
      'a value out of range',
      { tree: { maxLeaf: 0 } },
      'INVALID_ARGUMENT',
      /an integer from 1 to \d+ for tree\.maxLeaf but received 0/,
    ],
    ['a fraction', { tree: { maxLeaf: 1.5 } }, 'INVALID_ARGUMENT', /received 1\.5/],
    ['NaN', { solver: { cp: Number.NaN } }, 'INVALID_ARGUMENT', /received NaN/],
    ['a text for a number', { tree: { maxLeaf: '3' } }, 'INVALID_ARGUMENT', /received "3" of type string/],
    ['null', { tree: { maxLeaf: null } }, 'INVALID_ARGUMENT', /received null of type object/],
    ['a group that is no object', { tree: 3 }, 'INVALID_ARGUMENT', /an object for tree but received 3/],
    ['a wrong choice', { solver: { loss: 'cubic' } }, 'INVALID_ARGUMENT', /squared-hinge, hinge, logistic/],
    [
      'a number for a truth value',
      { model: { normalize: 1 } },
      'INVALID_ARGUMENT',
      /true or false for model\.normalize/,
    ],
    ['names that are no texts', { labelNames: [1] }, 'INVALID_ARGUMENT', /labelNames\[0\]/],
    ['too few names', { labelNames: ['one'] }, 'SHAPE_MISMATCH', /./],
    ['no object', 3, 'INVALID_ARGUMENT', /an object for options/],
    ['a map', new Map([['k', 3]]), 'INVALID_ARGUMENT', /an object for options but received Map/],
    ['a promise', Promise.resolve({}), 'INVALID_ARGUMENT', /an object for options but received Promise/],
    ['a name that every object has', JSON.parse('{ "__proto__": 1 }'), 'UNKNOWN_OPTION', /__proto__/],
    ['a value without a text', { plans: Object.create(null) }, 'UNKNOWN_OPTION', /plans/],
    ['groups in groups without end', endless, 'UNKNOWN_OPTION', /tree\.tree/],
    [
      'one option twice',
      { 'tree.maxLeaf': 4, tree: { maxLeaf: 7 } },
      'INVALID_ARGUMENT',
      "Expected either 'tree.maxLeaf' or tree: { maxLeaf } but received both",
    ],
    [
      'one option twice, the group first',
      { tree: { maxLeaf: 7 }, 'tree.maxLeaf': 7 },
      'INVALID_ARGUMENT',
      /'tree\.maxLeaf' or tree: \{ maxLeaf \}/,
    ],
    ['metadata without end', { metadata: endless }, 'INVALID_ARGUMENT', /a JSON value for metadata/],
    ['metadata that JSON lacks', { metadata: () => 1 }, 'INVALID_ARGUMENT', /a JSON value for metadata/],
  ]
  it.each(bad)('refuse %s', async (_, options, code, message) => {
    await expectError(() => XLinear.train(data.x, data.y, options as never), code, message)
  })

  it('are checked for prediction and calls as well', async () => {
    await expectError(
      () => model.predict(data.x, { beams: 3 } as never),
      'UNKNOWN_OPTION',
      /did you mean beam/,
    )
    await expectError(() => model.predict(data.x, { k: 0 }), 'INVALID_ARGUMENT', /for k but received 0/)
    await expectError(
      () => model.predictOne(data.x.row(0), { k: 5n } as never),
      'INVALID_ARGUMENT',
      /for k but received 5/,
    )
    for (const floor of [Number.NaN, Number.NEGATIVE_INFINITY, '0'])
      await expectError(
        () => model.predict(data.x, { floor } as never),
        'INVALID_ARGUMENT',
        /^Expected a finite number for floor but received/,
      )
    await expectError(() => model.searcher({ scores: 'best' as never }), 'INVALID_ARGUMENT', /l3-hinge/)
    await expectError(() => model.predict(data.x, {}, { thread: 1 } as never), 'UNKNOWN_OPTION', /thread/)
    await expectError(
      () => model.predict(data.x, {}, { threads: -1 }),
      'INVALID_ARGUMENT',
      /for threads but received -1/,
    )
    await expectError(() => model.predict(data.x, {}, { seed: 0.5 }), 'INVALID_ARGUMENT', /seed/)
    await expectError(
      () => model.predict(data.x, {}, { signal: {} as never }),
      'INVALID_ARGUMENT',
      /an AbortSignal for signal/,
    )
    await expectError(
      () => model.predict(data.x, {}, { onProgress: 1 as never }),
      'INVALID_ARGUMENT',
      /a function for onProgress/,
    )
  })

  it('resolve to all values, defaults included', async () => {
    const ofGroups = trainGroupsParameters({ group: { rounds: 0 }, tree: { maxLeaf: 7 } })
    expect(ofGroups).toMatchObject({ 'group.rounds': 0, 'group.method': 'refine', 'tree.maxLeaf': 7 })
    await expectError(() => trainGroupsParameters({ group: { folds: 1 } }), 'INVALID_ARGUMENT')
    const apart = trainParameters({ 'tree.maxLeaf': 4, tree: { maxLeaf: undefined, arity: 8 } } as never)
    expect(apart).toMatchObject({ 'tree.maxLeaf': 4, 'tree.arity': 8 })
    const all = trainParameters({ tree: { maxLeaf: 7 } })
    expect([all['tree.maxLeaf'], all['tree.arity'], Object.isFrozen(all)]).toEqual([7, 64, true])
    await expectError(() => trainParameters({ tree: { maxLeaf: -7 } }), 'INVALID_ARGUMENT')
  })
})

describe('shapes', () => {
  it('must fit', async () => {
    await expectError(() => XLinear.train(data.x, matrix([[[0, 1]]], 40)), 'SHAPE_MISMATCH', /600/)
    await expectError(
      () => model.predict(matrix([[]], 141)),
      'SHAPE_MISMATCH',
      /141 columns but the model 140/,
    )
    // Fewer columns are fine: a test file may lack the last features.
    expect((await model.predict(matrix([[[0, 1]]], 1))).rows).toBe(1)
    await expectError(() => XLinear.train([] as never, data.y), 'INVALID_ARGUMENT', /a Csr or Features for x/)
    await expectError(() => XLinear.train(data.x, undefined as never), 'INVALID_ARGUMENT', /a Csr for y/)
    await expectError(() => model.predict({} as never), 'INVALID_ARGUMENT', /for x/)
  })

  it('may be empty where that means something', async () => {
    expect((await model.predict(matrix([], 140))).rows).toBe(0)
    const blank = await model.predict(matrix([[], []], 140), { k: 3 })
    expect(blank.rows).toBe(2)
    // A label without rows and a row without labels or features train all the same.
    const odd = await XLinear.train(matrix([[[0, 1]], [], [[1, 1]]], 2), matrix([[[0, 1]], [[1, 1]], []], 3))
    expect((await odd.predict(matrix([[[0, 1]]], 2), { k: 1 })).labels[0]).toBe(0)
  })
})
