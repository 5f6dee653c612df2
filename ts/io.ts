// Files. The engine reads and writes them; nothing of them passes through JavaScript's memory. Writers that fail or are
// cancelled leave no file, and an old one as it was.

import { fileURLToPath } from 'node:url'
import { expected } from './errors.js'
import { run } from './job.js'
import { Csr, csrOf, Dense, type Features, featuresOf } from './matrix.js'
import { native } from './native.js'
import { type CallOptions, flag, integer, only, optionsOf } from './options.js'

/** A file's name, or its `file:` URL. */
export type PathLike = string | URL

/** Rows with their labels. */
export interface Dataset {
  /** Features of the rows. */
  x: Csr
  /** Labels of the rows. */
  y: Csr
}

/** How to read LIBSVM text, which states neither its sizes nor where its ids begin. */
export interface LibsvmOptions {
  /**
   * Feature ids count from 1, as LIBSVM's own files do. Label ids count from 0 in either case.
   * @defaultValue `false`
   */
  oneBased?: boolean | undefined
  /** Number of features; without it the largest id decides. A test file needs its training file's number. */
  features?: number | undefined
  /** Number of labels; without it the largest id decides. */
  labels?: number | undefined
}

/** The file's name of a path argument. */
export function pathOf(path: unknown): string {
  if (path instanceof URL && path.protocol === 'file:') return fileURLToPath(path)
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw expected('a file name or file: URL', 'path', path)
  return path
}

/**
 * Reads a file of the Extreme Classification Repository, plain or gzip: a header `rows features labels`, then a line
 * `l1,l2 f:v f:v` for each row. A fault is a `PARSE` error with file and line.
 */
export async function readXmc(path: PathLike, call?: CallOptions): Promise<Dataset> {
  const { x, y } = await run(call, readXmc, (control) => native.readXmc(pathOf(path), control))
  return { x: Csr.wrap(x), y: Csr.wrap(y) }
}

/** Reads LIBSVM text, plain or gzip. */
export async function readLibsvm(
  path: PathLike,
  options?: LibsvmOptions,
  call?: CallOptions,
): Promise<Dataset> {
  const { x, y } = await run(call, readLibsvm, (control) => {
    const given = optionsOf(options)
    only(given, ['oneBased', 'features', 'labels'])
    const size = (name: string) =>
      given[name] === undefined ? undefined : integer(given[name], name, 0, 2 ** 32 - 1, 0)
    const oneBased = flag(given.oneBased, 'oneBased', false)
    return native.readLibsvm(pathOf(path), oneBased, size('features'), size('labels'), control)
  })
  return { x: Csr.wrap(x), y: Csr.wrap(y) }
}

/** How to write LIBSVM text. */
export interface WriteLibsvmOptions {
  /**
   * Count feature ids from 1, as LIBSVM's own files do. Label ids count from 0 in either case.
   * @defaultValue `false`
   */
  oneBased?: boolean | undefined
}

/**
 * Writes rows and labels as LIBSVM text; gzip where the name ends in `.gz`. The format has neither the sizes of the
 * matrices, nor weights of labels, nor rows without labels and features: the latter two are refused.
 */
export async function writeLibsvm(
  path: PathLike,
  x: Csr | Features,
  y: Csr,
  options?: WriteLibsvmOptions,
  call?: CallOptions,
): Promise<void> {
  await run(call, writeLibsvm, (control) => {
    const given = optionsOf(options)
    only(given, ['oneBased'])
    const oneBased = flag(given.oneBased, 'oneBased', false)
    return native.writeLibsvm(pathOf(path), featuresOf(x, 'x'), csrOf(y, 'y'), oneBased, control)
  })
}

/**
 * Reads a sparse matrix that `scipy.sparse.save_npz` wrote; gzip where the name ends in `.gz`. Rows are sorted,
 * duplicates summed.
 */
export async function readNpz(path: PathLike, call?: CallOptions): Promise<Csr> {
  return Csr.wrap(await run(call, readNpz, (control) => native.readNpz(pathOf(path), control)))
}

/** Reads a dense matrix that `numpy.save` wrote; gzip where the name ends in `.gz`. */
export async function readNpy(path: PathLike, call?: CallOptions): Promise<Dense> {
  return Dense.wrap(await run(call, readNpy, (control) => native.readNpy(pathOf(path), control)))
}

/** How to write `.npz`. */
export interface WriteNpzOptions {
  /**
   * Deflate the arrays, as SciPy does by default: smaller and slower.
   * @defaultValue `true`
   */
  compressed?: boolean | undefined
}

/**
 * Writes a sparse matrix so that `scipy.sparse.load_npz` reads it; gzip of that where the name ends in `.gz`. The file
 * appears whole or not at all.
 */
export async function writeNpz(
  path: PathLike,
  matrix: Csr,
  options?: WriteNpzOptions,
  call?: CallOptions,
): Promise<void> {
  await run(call, writeNpz, (control) => {
    const given = optionsOf(options)
    only(given, ['compressed'])
    const compressed = flag(given.compressed, 'compressed', true)
    return native.writeNpz(pathOf(path), csrOf(matrix, 'matrix'), compressed, control)
  })
}

/**
 * Writes a dense matrix so that `numpy.load` reads it; gzip of that where the name ends in `.gz`. The file appears whole
 * or not at all.
 */
export async function writeNpy(path: PathLike, matrix: Dense, call?: CallOptions): Promise<void> {
  await run(call, writeNpy, (control) => {
    if (!(matrix instanceof Dense)) throw expected('a Dense', 'matrix', matrix)
    return native.writeNpy(pathOf(path), matrix.native, control)
  })
}

/** Writes rows and labels as Extreme Classification Repository text; gzip where the name ends in `.gz`. */
export async function writeXmc(path: PathLike, x: Csr | Features, y: Csr, call?: CallOptions): Promise<void> {
  await run(call, writeXmc, (control) => {
    return native.writeXmc(pathOf(path), featuresOf(x, 'x'), csrOf(y, 'y'), control)
  })
}
