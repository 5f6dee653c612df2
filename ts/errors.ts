// One error for everything that goes wrong: a stable code, a message that names the value and the cure.

/** The stable codes of {@link AquilaError}. Services may match on them. */
export type ErrorCode =
  /** A value has the wrong type or is outside its range. */
  | 'INVALID_ARGUMENT'
  /** An option has a name that does not exist. */
  | 'UNKNOWN_OPTION'
  /** Two matrices, or a matrix and a model, do not fit together. */
  | 'SHAPE_MISMATCH'
  /** A value is NaN or infinite. */
  | 'NOT_FINITE'
  /** A row, column or label id is not below its limit. */
  | 'INDEX_OUT_OF_RANGE'
  /** Indices of a row are not strictly ascending, or a row pointer falls. */
  | 'UNSORTED_INDICES'
  /** An index occurs twice in one row. */
  | 'DUPLICATE_INDEX'
  /** A text or array file breaks its format. */
  | 'PARSE'
  /** The operating system refused: file missing, no permission, disk full. */
  | 'IO'
  /** The file is no Aquila model, or is cut short, or its structure is broken. */
  | 'BAD_MODEL'
  /** The model file is of a version that this build cannot read. */
  | 'MODEL_VERSION'
  /** The model file's bytes differ from its checksums. */
  | 'CHECKSUM'
  /** A tree does not hold every label, or its layers do not fit together. */
  | 'BAD_TREE'
  /** The object was closed. */
  | 'CLOSED'
  /** The call was cancelled without an `AbortSignal`'s own reason. */
  | 'CANCELLED'
  /** The forecast memory passes the given limit. */
  | 'MEMORY_LIMIT'
  /** The system refused memory. */
  | 'OUT_OF_MEMORY'
  /** A valid request that this version does not serve. */
  | 'UNSUPPORTED'
  /** There is no native library for this platform, or it was not installed. */
  | 'UNSUPPORTED_PLATFORM'
  /** A defect of Aquila itself. */
  | 'INTERNAL'

/**
 * What every function of this library throws or rejects with.
 *
 * @example
 * ```ts
 * try {
 *   await XLinear.open('missing.aquila')
 * } catch (error) {
 *   if (error instanceof AquilaError && error.code === 'IO') console.error(error.message)
 * }
 * ```
 */
export class AquilaError extends Error {
  /** Always `'AquilaError'`. */
  override readonly name = 'AquilaError'
  /** What kind of thing went wrong. */
  readonly code: ErrorCode

  /** An error of this code with this message. */
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  if (typeof value === 'function') return value.name || 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  return value.constructor?.name ?? 'an object'
}

/** The error of an argument of the wrong type: one form for all of them. */
export function expected(what: string, name: string, value: unknown): AquilaError {
  const message = `Expected ${what} for ${name} but received ${show(value)} of type ${typeof value}`
  return new AquilaError('INVALID_ARGUMENT', message)
}

/** The largest id is what `indexOf` returns for a name it does not find, stored in a typed array without a sign. */
export const nameWrapped = (message: string) =>
  message.replace(
    /\b4294967295(?=(?: at rank \d+)? is not below)/,
    '4294967295 (-1 stored in a Uint32Array: was a name not found?)',
  )

/**
 * The native library's error as an {@link AquilaError}. Native errors of a promise have no JavaScript stack:
 * `trace` brings the one of the call.
 */
export function translate(error: unknown, trace?: { stack?: string }): unknown {
  if (error instanceof AquilaError || !(error instanceof Error)) return error
  const code = (error as Error & { code?: string }).code
  // Node-API's own codes ("InvalidArg", "GenericFailure") are not in capitals: the facade let something through.
  const known = code !== undefined && /^[A-Z_]+$/.test(code)
  const made = new AquilaError(known ? (code as ErrorCode) : 'INTERNAL', nameWrapped(error.message))
  if (!known) made.cause = error
  const stack = trace?.stack ?? error.stack
  const frames = stack?.slice(stack.indexOf('\n    at '))
  if (frames?.startsWith('\n')) made.stack = `${made.name} [${made.code}]: ${made.message}${frames}`
  return made
}

/** Runs a synchronous call of the native library. */
export function attempt<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw translate(error)
  }
}
