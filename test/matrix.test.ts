import { Csr, type CsrInput, Dense, Features, LabelTree, Ranked } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, learned, matrix, random } from './helpers.js'

const good = (): CsrInput => ({
  rows: 2,
  cols: 4,
  indptr: new Uint32Array([0, 2, 3]),
  indices: new Uint32Array([0, 3, 1]),
  values: new Float32Array([1, 0.5, 2]),
})

describe('Csr.from', () => {
  it('takes every kind of typed array that it names', () => {
    const indptrs = [
      new Uint32Array([0, 2, 3]),
      new Int32Array([0, 2, 3]),
      new BigInt64Array([0n, 2n, 3n]),
      new BigUint64Array([0n, 2n, 3n]),
      new Float64Array([0, 2, 3]),
    ]
    for (const indptr of indptrs)
      for (const indices of [new Uint32Array([0, 3, 1]), new Int32Array([0, 3, 1])])
        for (const values of [new Float32Array([1, 0.5, 2]), new Float64Array([1, 0.5, 2])]) {
          const x = Csr.from({ ...good(), indptr, indices, values })
          expect([x.rows, x.cols, x.nnz]).toEqual([2, 4, 3])
          expect(x.toArrays()).toEqual({
            indptr: new Uint32Array([0, 2, 3]),
            indices: new Uint32Array([0, 3, 1]),
            values: new Float32Array([1, 0.5, 2]),
          })
        }
  })

  it('copies: later changes and transfers of the arrays do not reach the matrix', () => {
    const input = good()
    const x = Csr.from(input)
    input.values[0] = Number.NaN
    structuredClone(input.indices, { transfer: [input.indices.buffer as ArrayBuffer] })
    expect(x.row(0)).toEqual({ indices: new Uint32Array([0, 3]), values: new Float32Array([1, 0.5]) })
    x.toArrays().values.fill(9)
    expect(x.row(1).values[0]).toBe(2)
  })

  it('takes views into larger buffers and empty matrices', () => {
    const all = new Float32Array([9, 1, 0.5, 2, 9])
    expect(Csr.from({ ...good(), values: all.subarray(1, 4) }).row(0).values[1]).toBe(0.5)
    const none = { indptr: new Uint32Array([0]), indices: new Uint32Array(), values: new Float32Array() }
    expect(Csr.from({ rows: 0, cols: 0, ...none }).nnz).toBe(0)
  })

  it('sorts and sums with unsorted', () => {
    const input = { ...good(), indices: new Uint32Array([3, 3, 1]), unsorted: true }
    expect(Csr.from(input).row(0)).toEqual({ indices: new Uint32Array([3]), values: new Float32Array([1.5]) })
  })

  const bad: [string, Partial<Record<keyof CsrInput, unknown>>, Parameters<typeof expectError>[1], RegExp][] =
    [
      ['NaN', { values: new Float32Array([1, Number.NaN, 2]) }, 'NOT_FINITE', /row 0: .*column 3 is NaN/],
      ['infinity', { values: new Float64Array([1, 1e300, 2]) }, 'NOT_FINITE', /row 0/],
      ['unsorted', { indices: new Uint32Array([3, 0, 1]) }, 'UNSORTED_INDICES', /row 0: column 0 .*sort/],
      ['duplicates', { indices: new Uint32Array([3, 3, 1]) }, 'DUPLICATE_INDEX', /row 0: column 3/],
      ['out of range', { indices: new Uint32Array([0, 4, 1]) }, 'INDEX_OUT_OF_RANGE', /column 4/],
      ['negative index', { indices: new Int32Array([0, -1, 1]) }, 'INDEX_OUT_OF_RANGE', /indices\[1\] is -1/],
      ['falling pointers', { indptr: new Uint32Array([0, 5, 3]) }, 'UNSORTED_INDICES', /falls from 5 to 3/],
      [
        'fractional pointers',
        { indptr: new Float64Array([0, 1.5, 3]) },
        'INDEX_OUT_OF_RANGE',
        /indptr\[1\] is 1.5/,
      ],
      ['NaN pointers', { indptr: new Float64Array([0, Number.NaN, 3]) }, 'INDEX_OUT_OF_RANGE', /NaN/],
      ['huge pointers', { indptr: new BigUint64Array([0n, 2n ** 63n, 3n]) }, 'UNSORTED_INDICES', /falls/],
      ['short pointers', { indptr: new Uint32Array([0, 3]) }, 'SHAPE_MISMATCH', /need 3 row pointers/],
      ['wrong end', { indptr: new Uint32Array([0, 2, 2]) }, 'SHAPE_MISMATCH', /must run from 0/],
      ['lengths', { values: new Float32Array([1, 2]) }, 'SHAPE_MISMATCH', /3 column ids but 2 values/],
      [
        'an array',
        { values: [1, 2, 3] },
        'INVALID_ARGUMENT',
        /^Expected a Float32Array or Float64Array for values but received Array of type object$/,
      ],
      [
        'bytes',
        { indices: new Uint8Array(3) },
        'INVALID_ARGUMENT',
        /^Expected a Uint32Array or Int32Array for indices/,
      ],
      ['no values', { values: undefined }, 'INVALID_ARGUMENT', /received undefined of type undefined/],
      ['text rows', { rows: '2' }, 'INVALID_ARGUMENT', /for rows but received "2" of type string$/],
      ['no rows', { rows: undefined }, 'INVALID_ARGUMENT', /for rows/],
      ['too many columns', { cols: 2 ** 32 }, 'INVALID_ARGUMENT', /for cols but received 4294967296/],
      ['an unknown name', { column: 1 } as never, 'UNKNOWN_OPTION', /column/],
    ]
  it.each(bad)('refuses %s', async (_, change, code, message) => {
    await expectError(() => Csr.from({ ...good(), ...change } as CsrInput), code, message)
  })

  it('refuses detached arrays', async () => {
    const input = good()
    structuredClone(input.indptr, { transfer: [input.indptr.buffer as ArrayBuffer] })
    await expectError(() => Csr.from(input), 'SHAPE_MISMATCH', /received 0/)
  })

  it('refuses no object at all', async () => {
    for (const value of [undefined, null, 3, 'x', []])
      await expectError(() => Csr.from(value as never), 'INVALID_ARGUMENT')
  })
})

describe('Csr.fromRows', () => {
  it('takes each form of a row, in plain and in typed arrays, and empty rows', () => {
    const forms = [
      { indices: [0, 3], values: [1, 0.5] },
      { indices: new Uint32Array([0, 3]), values: new Float32Array([1, 0.5]) },
      { indices: new Int8Array([0, 3]), values: new Float64Array([1, 0.5]) },
      [
        [0, 1],
        [3, 0.5],
      ],
      new Map([
        [0, 1],
        [3, 0.5],
      ]),
    ]
    const empty = [[], new Map<number, number>(), { indices: [], values: [] }]
    const x = Csr.fromRows([...forms, ...empty], 4)
    expect([x.rows, x.cols, x.nnz]).toEqual([8, 4, 10])
    for (let i = 0; i < forms.length; i++)
      expect(x.row(i)).toEqual({ indices: new Uint32Array([0, 3]), values: new Float32Array([1, 0.5]) })
    for (let i = forms.length; i < 8; i++) expect(x.row(i).indices.length).toBe(0)
    expect([Csr.fromRows([], 4).rows, Csr.fromRows([[]], 0).cols]).toEqual([0, 0])
  })

  it('sorts entries and sums duplicates', () => {
    const x = Csr.fromRows(
      [
        [
          [3, 1],
          [0, 2],
          [3, 0.5],
        ],
        { indices: [2, 1, 2], values: [1, 1, -1] },
      ],
      4,
    )
    expect(x.row(0)).toEqual({ indices: new Uint32Array([0, 3]), values: new Float32Array([2, 1.5]) })
    expect(x.row(1)).toEqual({ indices: new Uint32Array([1, 2]), values: new Float32Array([1, 0]) })
  })

  it('agrees with Csr.from on random rows', () => {
    const next = random(9)
    const rows = Array.from({ length: 200 }, () =>
      Array.from({ length: Math.floor(next() * 8) }, () => [Math.floor(next() * 20), next() - 0.5]),
    )
    const flat = rows.flat() as [number, number][]
    let end = 0
    const expected = Csr.from({
      rows: 200,
      cols: 20,
      indptr: Uint32Array.from([0, ...rows.map((row) => (end += row.length))]),
      indices: Uint32Array.from(flat, ([id]) => id),
      values: Float32Array.from(flat, ([, value]) => value),
      unsorted: true,
    })
    expect(Csr.fromRows(rows, 20).toArrays()).toEqual(expected.toArrays())
  })

  const bad: [string, unknown, Parameters<typeof expectError>[1], RegExp][] = [
    [
      'NaN',
      [
        [0, 1],
        [2, Number.NaN],
      ],
      'NOT_FINITE',
      /^row 1, entry 1: the value of id 2 is NaN: /,
    ],
    ['infinity', new Map([[2, -Infinity]]), 'NOT_FINITE', /^row 1, entry 0: the value of id 2 is -Infinity/],
    [
      'a value too large',
      { indices: [1], values: [1e300] },
      'NOT_FINITE',
      /^row 1, entry 0: .* 1e\+300, too large/,
    ],
    [
      'an id of -1',
      [
        [0, 1],
        [-1, 1],
      ],
      'INDEX_OUT_OF_RANGE',
      /^row 1, entry 1: the id -1 is negative/,
    ],
    [
      'an id of -1 in typed arrays',
      { indices: new Int32Array([0, -1]), values: new Float32Array(2) },
      'INDEX_OUT_OF_RANGE',
      /^row 1, entry 1: the id -1 is negative/,
    ],
    [
      'a fractional id',
      new Map([
        [0, 1],
        [1.5, 1],
      ]),
      'INDEX_OUT_OF_RANGE',
      /^row 1, entry 1: the id 1\.5 is not an integer$/,
    ],
    [
      'an id of NaN',
      [[Number.NaN, 1]],
      'INDEX_OUT_OF_RANGE',
      /^row 1, entry 0: the id NaN is not an integer$/,
    ],
    [
      'an id beyond the columns',
      [[4, 1]],
      'INDEX_OUT_OF_RANGE',
      /^row 1, entry 0: the id 4 is not below the number of columns, 4$/,
    ],
    [
      'a text for an id',
      [['a', 1]],
      'INVALID_ARGUMENT',
      /a number for the id of row 1, entry 0 but received "a"/,
    ],
    [
      'no value',
      [[1, undefined]],
      'INVALID_ARGUMENT',
      /a number for the value of row 1, entry 0 but received undefined/,
    ],
    [
      'big integers',
      { indices: new BigInt64Array(1), values: [1] },
      'INVALID_ARGUMENT',
      /a number for the id of row 1, entry 0/,
    ],
    [
      'ids without values',
      [0, 3],
      'INVALID_ARGUMENT',
      /a pair \[id, value\] for row 1, entry 0 but received 0 of type number/,
    ],
    ['a pair of three', [[1, 2, 3]], 'INVALID_ARGUMENT', /a pair \[id, value\] for row 1, entry 0/],
    [
      'a hole',
      new Array(1),
      'INVALID_ARGUMENT',
      /a pair \[id, value\] for row 1, entry 0 but received undefined/,
    ],
    [
      'different lengths',
      { indices: [1, 2], values: [1] },
      'SHAPE_MISMATCH',
      /row 1 has 2 indices but 1 values/,
    ],
    [
      'no values',
      { indices: [1] },
      'INVALID_ARGUMENT',
      /an array for the values of row 1 but received undefined/,
    ],
    ['a set', new Set([1]), 'INVALID_ARGUMENT', /a Map for row 1 but received Set/],
    ['nothing', undefined, 'INVALID_ARGUMENT', /a Map for row 1 but received undefined/],
  ]
  it.each(bad)('refuses %s by row and entry', async (_, row, code, message) => {
    await expectError(() => Csr.fromRows([[[0, 1]], row as never], 4), code, message)
  })

  it('refuses sums that are not finite, other rows and other columns', async () => {
    const large = [
      [
        [1, 3e38],
        [1, 3e38],
      ],
    ]
    await expectError(() => Csr.fromRows(large, 4), 'NOT_FINITE', /row 0: the value of column 1 is inf/)
    for (const rows of [undefined, null, 'x', 3, new Map(), { length: 0 }])
      await expectError(() => Csr.fromRows(rows as never, 4), 'INVALID_ARGUMENT', /an array of rows for rows/)
    await expectError(
      () => Csr.fromRows(new Array(1), 4),
      'INVALID_ARGUMENT',
      /for row 0 but received undefined/,
    )
    for (const cols of [undefined, -1, 1.5, 2 ** 32, '4'])
      await expectError(() => Csr.fromRows([], cols as never), 'INVALID_ARGUMENT', /for cols but received/)
  })

  it('refuses rows that change while they are read', async () => {
    let asked = 0
    const row = {
      get indices() {
        return asked++ === 0 ? [0, 1] : [0]
      },
      values: [1, 1],
    }
    await expectError(() => Csr.fromRows([row], 4), 'INVALID_ARGUMENT', /row 0/)
  })

  it('packs a million short rows within seconds', () => {
    const rows = Array.from({ length: 1_000_000 }, (_, i) => [
      [i % 1000, 1],
      [(i + 7) % 1000, 1],
    ])
    const since = performance.now()
    expect(Csr.fromRows(rows, 1000).nnz).toBe(2_000_000)
    expect(performance.now() - since).toBeLessThan(5_000)
  })
})

describe('an id of -1 in a Uint32Array', () => {
  const wrapped = new Uint32Array([-1])
  const one = new Float32Array([1])
  const input = { rows: 1, cols: 4, indptr: new Uint32Array([0, 1]), indices: wrapped, values: one }

  it('is named as such', async () => {
    const { model } = await learned()
    const named = /4294967295 \(-1 stored in a Uint32Array: was a name not found\?\) is not below/
    for (const use of [
      () => Csr.from(input),
      () => Csr.fromRows([{ indices: wrapped, values: one }], 4),
      () => model.predictOne({ indices: wrapped, values: one }),
      () => model.searcher().search(wrapped, one),
      () => model.searcher({ allowed: wrapped }),
      () => model.meanings({ labels: wrapped }),
    ])
      await expectError(use, 'INDEX_OUT_OF_RANGE', named)
  })
})

describe('closing', () => {
  it('makes later use a CLOSED error and may be done twice', async () => {
    const x = matrix([[[0, 1]]], 2)
    x.close()
    x.close()
    for (const use of [() => x.rows, () => x.nnz, () => x.toArrays(), () => x.row(0)])
      await expectError(use, 'CLOSED', /the matrix is closed/)
    const dense = Dense.from({ rows: 1, cols: 1, values: new Float32Array(1) })
    dense[Symbol.dispose]()
    await expectError(() => dense.toArray(), 'CLOSED')
  })
})

describe('Csr.row', () => {
  it('refuses rows that are not there', async () => {
    const x = matrix([[[0, 1]]], 2)
    await expectError(() => x.row(1), 'INDEX_OUT_OF_RANGE', /row 1/)
    await expectError(() => x.row(-1), 'INVALID_ARGUMENT')
    await expectError(() => x.row(undefined as never), 'INVALID_ARGUMENT')
  })
})

describe('Dense and Features', () => {
  it('stand side by side', () => {
    const x = matrix([[[0, 1]], [[1, 1]]], 2)
    const dense = Dense.from({ rows: 2, cols: 3, values: new Float64Array([1, 2, 3, 4, 5, 6]) })
    expect([dense.rows, dense.cols, [...dense.toArray()]]).toEqual([2, 3, [1, 2, 3, 4, 5, 6]])
    const both = Features.from(x, dense)
    expect([both.rows, both.cols]).toEqual([2, 5])
  })

  it('refuse what does not fit', async () => {
    const x = matrix([[[0, 1]]], 2)
    const values = new Float32Array(4)
    await expectError(() => Dense.from({ rows: 2, cols: 3, values }), 'SHAPE_MISMATCH', /received 4/)
    values[1] = Number.NaN
    await expectError(() => Dense.from({ rows: 2, cols: 2, values }), 'NOT_FINITE', /row 0, column 1/)
    const two = Dense.from({ rows: 2, cols: 2, values: new Float32Array(4) })
    await expectError(() => Features.from(x, two), 'SHAPE_MISMATCH', /1 rows but the dense block 2/)
    await expectError(
      () => Features.from(x, x as never),
      'INVALID_ARGUMENT',
      /a Dense for dense but received Csr/,
    )
  })
})

describe('Ranked', () => {
  it('gives rows and a score matrix', async () => {
    const top = new Ranked({
      indptr: new Uint32Array([0, 2, 2]),
      labels: new Uint32Array([5, 1]),
      scores: new Float32Array([0.9, 0.25]),
    })
    expect(top.rows).toBe(2)
    expect(top.row(0)).toEqual({ labels: new Uint32Array([5, 1]), scores: new Float32Array([0.9, 0.25]) })
    expect(top.row(1).labels.length).toBe(0)
    expect(top.toCsr(6).row(0)).toEqual({
      indices: new Uint32Array([1, 5]),
      values: new Float32Array([0.25, 0.9]),
    })
    await expectError(() => top.row(2), 'INVALID_ARGUMENT', /from 0 to 1/)
    await expectError(() => top.toCsr(5), 'INDEX_OUT_OF_RANGE')
  })
})

describe('LabelTree', () => {
  it('goes through JSON', async () => {
    const tree = LabelTree.fromJson('{ "aquilaTree": 1, "labels": 3, "root": [[0, 1], [1, 2]] }')
    expect([tree.labels, tree.slots, tree.layers]).toEqual([3, 4, [2, 4]])
    expect(LabelTree.fromJson(tree.toJson()).toJson()).toBe(tree.toJson())
    await expectError(() => LabelTree.fromJson('{'), 'PARSE')
    await expectError(
      () => LabelTree.fromJson('{ "aquilaTree": 1, "labels": 9, "root": [[0, 1]] }'),
      'BAD_TREE',
    )
    await expectError(() => LabelTree.fromJson(3 as never), 'INVALID_ARGUMENT', /a string for json/)
  })

  it('ends with close, as the other handles do', async () => {
    const make = () => LabelTree.fromJson('{ "aquilaTree": 1, "labels": 3, "root": [[0, 1], [1, 2]] }')
    const tree = make()
    const uses = [
      () => tree.labels,
      () => tree.slots,
      () => tree.layers,
      () => tree.toJson(),
      () => tree.toChain(),
    ]
    for (const use of uses) use()
    expect(tree.isOpen).toBe(true)
    tree.close()
    tree.close()
    expect(tree.isOpen).toBe(false)
    for (const use of uses) await expectError(use, 'CLOSED', /the tree is closed/)
    const disposed = make()
    disposed[Symbol.dispose]()
    expect(disposed.isOpen).toBe(false)
  })
})
