// Rows as JavaScript has them, packed into the three arrays of a sparse matrix.

import { AquilaError, expected, nameWrapped } from './errors.js'
import { isObject } from './options.js'

/**
 * One row: `{ indices, values }` of equal length, a list of pairs `[id, value]`, or a `Map` from ids to values. Lists
 * may be plain or typed arrays.
 */
export type RowInput =
  | {
      /** Column ids, in any order. */
      readonly indices: ArrayLike<number>
      /** One finite value for each id. */
      readonly values: ArrayLike<number>
    }
  | readonly (readonly number[])[]
  | ReadonlyMap<number, number>

/** The most entries that row pointers of 32 bits count. */
const MOST = 2 ** 32 - 1

const isList = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))

/** The number of entries of a row, whose form is checked. */
function lengthOf(row: unknown, i: number): number {
  if (Array.isArray(row)) return row.length
  if (row instanceof Map) return row.size
  if (!isObject(row))
    throw expected('{ indices, values }, an array of pairs [id, value] or a Map', `row ${i}`, row)
  const { indices, values } = row
  if (!isList(indices)) throw expected('an array', `the indices of row ${i}`, indices)
  if (!isList(values)) throw expected('an array', `the values of row ${i}`, values)
  if (indices.length !== values.length)
    throw new AquilaError(
      'SHAPE_MISMATCH',
      `row ${i} has ${indices.length} indices but ${values.length} values`,
    )
  return indices.length
}

/** What is wrong with an id or a value. */
function fault(row: number, entry: number, id: unknown, value: unknown, cols: number): AquilaError {
  const place = `row ${row}, entry ${entry}`
  if (typeof id !== 'number') return expected('a number', `the id of ${place}`, id)
  if (typeof value !== 'number') return expected('a number', `the value of ${place}`, value)
  const of = (why: string) =>
    new AquilaError('INDEX_OUT_OF_RANGE', nameWrapped(`${place}: the id ${id} ${why}`))
  if (!Number.isInteger(id)) return of('is not an integer')
  if (id < 0) return of('is negative: ids count from 0, and indexOf returns -1 for what it does not find')
  if (id >= cols) return of(`is not below the number of columns, ${cols}`)
  const size = Number.isFinite(value) ? `${value}, too large for a 32-bit float` : value
  return new AquilaError('NOT_FINITE', `${place}: the value of id ${id} is ${size}: replace or drop it`)
}

/** Packs rows as they are: unsorted, and with an id as often as it was given. */
export function pack(
  rows: unknown,
  cols: number,
): { indptr: Uint32Array; indices: Uint32Array; values: Float32Array } {
  if (!Array.isArray(rows)) throw expected('an array of rows', 'rows', rows)
  // Counted first, so that each array is made once, of its final size.
  const indptr = new Uint32Array(rows.length + 1)
  let total = 0
  for (let i = 0; i < rows.length; i++) {
    total += lengthOf(rows[i], i)
    if (total > MOST)
      throw new AquilaError('UNSUPPORTED', `more than ${MOST} entries up to row ${i}: split the rows`)
    indptr[i + 1] = total
  }
  const indices = new Uint32Array(total)
  const values = new Float32Array(total)
  let n = 0
  const put = (i: number, id: unknown, value: unknown) => {
    const column = id as number
    const stored = Math.fround(value as number)
    const right = typeof id === 'number' && typeof value === 'number' && Number.isInteger(column)
    if (!right || column < 0 || column >= cols || !Number.isFinite(stored))
      throw fault(i, n - (indptr[i] as number), id, value, cols)
    indices[n] = column
    values[n] = stored
    n++
  }
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]
    const end = indptr[i + 1] as number
    if (Array.isArray(row)) {
      for (const pair of row) {
        if (!Array.isArray(pair) || pair.length !== 2)
          throw expected('a pair [id, value]', `row ${i}, entry ${n - (indptr[i] as number)}`, pair)
        put(i, pair[0], pair[1])
      }
    } else if (row instanceof Map) {
      row.forEach((value, id) => {
        put(i, id, value)
      })
    } else {
      for (let j = 0; n < end; j++) put(i, row.indices[j], row.values[j])
    }
    // Only a row that changes while it is read, such as one made of getters, comes to another length.
    if (n !== end) throw new AquilaError('INVALID_ARGUMENT', `row ${i} changed while it was read`)
  }
  return { indptr, indices, values }
}
