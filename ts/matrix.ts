// Matrices: sparse rows, dense rows, and both side by side.

import { AquilaError, attempt, expected } from './errors.js'
import type { DenseMatrix, Matrix } from './native/binding.cjs'
import { native } from './native.js'
import { flag, integer, only, optionsOf } from './options.js'
import { pack, type RowInput } from './rows.js'
import { SEAL, sealed, uncloneable } from './sealed.js'

const MOST = 2 ** 32 - 1

const CSR = Symbol('a Csr, which is native memory: send its toArrays() instead')
const DENSE = Symbol('a Dense, which is native memory: send its toArray() instead')
const FEATURES = Symbol('Features, which are native memory: send the arrays of both parts instead')

/** The three arrays of a sparse matrix on their way in. */
export interface CsrInput {
  /** Number of rows. */
  rows: number
  /** Number of columns. */
  cols: number
  /** Row pointers: row `i` has the entries `indptr[i]` up to `indptr[i + 1]`. */
  indptr: Uint32Array | Int32Array | BigInt64Array | BigUint64Array | Float64Array
  /** Column ids, strictly ascending in each row. */
  indices: Uint32Array | Int32Array
  /** Finite values, one for each id. */
  values: Float32Array | Float64Array
  /**
   * Rows may be unsorted and hold an id twice: they are sorted and duplicates summed, as SciPy reads them.
   * @defaultValue `false`
   */
  unsorted?: boolean | undefined
}

/** The three arrays of a sparse matrix, copied out. */
export interface CsrArrays {
  /** Row pointers. */
  indptr: Uint32Array
  /** Column ids. */
  indices: Uint32Array
  /** Values. */
  values: Float32Array
}

/** One sparse row. */
export interface SparseRow {
  /** Column ids, strictly ascending. */
  indices: Uint32Array
  /** One finite value for each id. */
  values: Float32Array
}

/** One row of features with its dense part. */
export interface FeatureRow extends SparseRow {
  /** The row's values in the dense block, all of them; none for rows without one. */
  dense?: Float32Array | undefined
}

const INDPTR = [Uint32Array, Int32Array, BigInt64Array, BigUint64Array, Float64Array] as const
const INDICES = [Uint32Array, Int32Array] as const
const VALUES = [Float32Array, Float64Array] as const

type Constructor = abstract new (...args: never[]) => unknown

function typed(value: unknown, name: string, kinds: readonly Constructor[]): void {
  if (!kinds.some((kind) => value instanceof kind))
    throw expected(`a ${kinds.map((kind) => kind.name).join(' or ')}`, name, value)
}

/**
 * A sparse matrix by rows, held in native memory. Its column ids ascend strictly in each row and its values are
 * finite: both are checked once, on the way in.
 *
 * @example
 * ```ts
 * const x = Csr.from({
 *   rows: 2,
 *   cols: 4,
 *   indptr: new Uint32Array([0, 2, 3]),
 *   indices: new Uint32Array([0, 3, 1]),
 *   values: new Float32Array([1, 0.5, 2]),
 * })
 * console.log(x.rows, x.cols, x.nnz) // 2 4 3
 * ```
 */
export class Csr {
  /** @internal */
  readonly native: Matrix

  private constructor(seal: typeof SEAL, matrix: Matrix) {
    sealed(seal, 'Csr', 'Csr.from or Csr.fromRows, or readNpz and the other readers')
    this.native = matrix
    uncloneable(this, CSR)
  }

  /** @internal */
  static wrap(matrix: Matrix): Csr {
    return new Csr(SEAL, matrix)
  }

  /**
   * Copies typed arrays in, after a full check. The arrays may be changed or transferred as soon as it returns.
   * It works on the calling thread, about 2 ms for a million entries; larger data is better read from files.
   */
  static from(input: CsrInput): Csr {
    const given = optionsOf(input, 'the matrix')
    only(given, ['rows', 'cols', 'indptr', 'indices', 'values', 'unsorted'])
    const rows = integer(given.rows ?? null, 'rows', 0, MOST, 0)
    const cols = integer(given.cols ?? null, 'cols', 0, MOST, 0)
    const unsorted = flag(given.unsorted, 'unsorted', false)
    const { indptr, indices, values } = input
    typed(indptr, 'indptr', INDPTR)
    typed(indices, 'indices', INDICES)
    typed(values, 'values', VALUES)
    return new Csr(
      SEAL,
      attempt(() => native.Matrix.fromArrays(rows, cols, indptr, indices, values, unsorted)),
    )
  }

  /**
   * Makes a matrix of rows as JavaScript has them: each `{ indices, values }`, a list of pairs `[id, value]`, or a `Map`
   * from ids to values. Entries may come in any order: they are sorted, and the values of an id that is in a row
   * several times are summed. It works on the calling thread; larger data is better read from files.
   *
   * @param rows - The rows; one without entries is all zeros.
   * @param cols - Number of columns: ids run from 0 to `cols - 1`.
   *
   * @example
   * ```ts
   * const counts = Csr.fromRows([[[3, 1], [0, 1], [3, 1]], new Map([[1, 0.5]]), []], 4)
   * console.log(counts.row(0)) // indices 0 and 3, values 1 and 2
   * ```
   */
  static fromRows(rows: readonly RowInput[], cols: number): Csr {
    const width = integer(cols ?? null, 'cols', 0, MOST, 0)
    const { indptr, indices, values } = pack(rows, width)
    return new Csr(
      SEAL,
      attempt(() => native.Matrix.fromArrays(indptr.length - 1, width, indptr, indices, values, true)),
    )
  }

  /** Number of rows. */
  get rows(): number {
    return attempt(() => this.native.rows)
  }

  /** Number of columns. */
  get cols(): number {
    return attempt(() => this.native.cols)
  }

  /** Number of stored entries. */
  get nnz(): number {
    return attempt(() => this.native.nnz)
  }

  /** Copies the three arrays out. */
  toArrays(): CsrArrays {
    return attempt(() => this.native.arrays())
  }

  /** Copies one row out. */
  row(index: number): SparseRow {
    const row = integer(index ?? null, 'row', 0, MOST, 0)
    const { indices, values } = attempt(() => this.native.row(row))
    return { indices, values }
  }

  /** Lets go of the memory at once; calls that are running keep theirs. Closing twice is fine. */
  close(): void {
    this.native.close()
  }

  /** Closes the matrix at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}

/** A dense matrix on its way in. */
export interface DenseInput {
  /** Number of rows. */
  rows: number
  /** Number of columns. */
  cols: number
  /** `rows × cols` finite values, row after row. */
  values: Float32Array | Float64Array
}

/** Dense rows in native memory, such as embeddings. */
export class Dense {
  /** @internal */
  readonly native: DenseMatrix

  private constructor(seal: typeof SEAL, matrix: DenseMatrix) {
    sealed(seal, 'Dense', 'Dense.from or readNpy')
    this.native = matrix
    uncloneable(this, DENSE)
  }

  /** @internal */
  static wrap(matrix: DenseMatrix): Dense {
    return new Dense(SEAL, matrix)
  }

  /** Copies row-major values in, after a check. */
  static from(input: DenseInput): Dense {
    const given = optionsOf(input, 'the matrix')
    only(given, ['rows', 'cols', 'values'])
    const rows = integer(given.rows ?? null, 'rows', 0, MOST, 0)
    const cols = integer(given.cols ?? null, 'cols', 0, MOST, 0)
    typed(input.values, 'values', VALUES)
    return new Dense(
      SEAL,
      attempt(() => native.DenseMatrix.fromValues(rows, cols, input.values)),
    )
  }

  /** Number of rows. */
  get rows(): number {
    return attempt(() => this.native.rows)
  }

  /** Number of columns. */
  get cols(): number {
    return attempt(() => this.native.cols)
  }

  /** Copies all values out, row after row. */
  toArray(): Float32Array {
    return attempt(() => this.native.values())
  }

  /** Lets go of the memory at once. Closing twice is fine. */
  close(): void {
    this.native.close()
  }

  /** Closes the matrix at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}

/**
 * Sparse rows with a dense block beside them, such as TF-IDF and embeddings. The dense columns come after the
 * sparse ones.
 */
export class Features {
  /** @internal */
  readonly native: Matrix

  private constructor(seal: typeof SEAL, matrix: Matrix) {
    sealed(seal, 'Features', 'Features.from')
    this.native = matrix
    uncloneable(this, FEATURES)
  }

  /**
   * Joins both parts, which must have the same number of rows; `undefined` for the sparse one makes rows that are dense
   * alone. Nothing is copied: both may be closed at once.
   */
  static from(sparse: Csr | undefined, dense: Dense): Features {
    if (sparse !== undefined && !(sparse instanceof Csr)) throw expected('a Csr', 'sparse', sparse)
    if (!(dense instanceof Dense)) throw expected('a Dense', 'dense', dense)
    return new Features(
      SEAL,
      attempt(() => sparse?.native.withDense(dense.native) ?? native.Matrix.ofDense(dense.native)),
    )
  }

  /** Number of rows. */
  get rows(): number {
    return attempt(() => this.native.rows)
  }

  /** Number of columns, dense ones included. */
  get cols(): number {
    return attempt(() => this.native.cols)
  }

  /** Copies one row out. */
  row(index: number): FeatureRow {
    const row = integer(index ?? null, 'row', 0, MOST, 0)
    return attempt(() => this.native.row(row))
  }

  /** Lets go of the memory at once; calls that are running keep theirs. Closing twice is fine. */
  close(): void {
    this.native.close()
  }

  /** Closes the features at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }
}

/** The native matrix of rows. */
export function featuresOf(value: unknown, name: string): Matrix {
  if (value instanceof Csr || value instanceof Features) return value.native
  throw expected('a Csr or Features', name, value)
}

/** The native matrix of a sparse argument. */
export function csrOf(value: unknown, name: string): Matrix {
  if (value instanceof Csr) return value.native
  throw expected('a Csr', name, value)
}

/** As {@link csrOf}, with `undefined` for none. */
export function optionalCsr(value: unknown, name: string): Matrix | undefined {
  return value === undefined ? undefined : csrOf(value, name)
}

/** The typed arrays of one row, checked. */
export function rowOf(value: unknown): FeatureRow {
  const row = optionsOf(value, 'the row') as Partial<FeatureRow>
  typed(row.indices, 'indices', [Uint32Array])
  typed(row.values, 'values', [Float32Array])
  if (row.dense !== undefined) typed(row.dense, 'dense', [Float32Array])
  return row as FeatureRow
}

/** Label ids as a typed array, or `undefined`. */
export function labelsOf(value: unknown, name: string): Uint32Array | undefined {
  if (value === undefined) return undefined
  if (!(value instanceof Uint32Array)) throw expected('a Uint32Array', name, value)
  return value
}

/** The error of a matrix of the wrong height. */
export function mismatch(message: string): AquilaError {
  return new AquilaError('SHAPE_MISMATCH', message)
}
