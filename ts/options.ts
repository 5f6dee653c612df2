// Options on their way in: nested objects become the engine's names ("tree.maxLeaf"), values get a first check.

import { AquilaError, expected } from './errors.js'
import type { ParameterSpec } from './native/binding.cjs'
import { native } from './native.js'
import { isHandle } from './sealed.js'

/** A value of an option. */
export type OptionValue = boolean | number | string

/** Options by the engine's full names. */
export type FlatOptions = Record<string, OptionValue>

/**
 * What a heavy call is doing. `'forecast'` comes first, where memory is forecast; then, as far as the call does it:
 * labels of groups are assigned, embedded or refined; labels become vectors and these a tree; the upper layers are
 * learned as a matcher and labels hung under further leaves; all layers are learned and laid out. Prediction has one
 * stage of its own. Later versions may have others.
 */
export type Stage =
  | 'forecast'
  | 'assign'
  | 'embed'
  | 'refine'
  | 'labelVectors'
  | 'tree'
  | 'matcher'
  | 'overlap'
  | 'layers'
  | 'layout'
  | 'predict'

/** How far a call has come. */
export interface Progress {
  /** What is being done. */
  stage: Stage
  /** Units of work done in this stage. */
  done: number
  /** Units of work of this stage in all. */
  total: number
  /**
   * While layers are learned: the first that is not learned to its end, from 0 at the root, and at the end their number.
   * They are learned side by side, the costliest parts first.
   */
  layer?: number
  /** Rows of the input. */
  rows: number
  /** Labels of the input. */
  labels: number
  /** Seconds since the call began. */
  seconds: number
  /** Seconds until this stage ends, by the speed so far; left out while unknown. */
  eta?: number
  /** In the stage `'forecast'`, which comes before the work: the forecast peak of memory in bytes. */
  forecastBytes?: number
}

/** What every heavy call takes as its last argument. */
export interface CallOptions {
  /** Cancels the call; its promise is then rejected with the signal's reason. */
  signal?: AbortSignal | undefined
  /**
   * Told how far the call has come. Reports that come faster than they are fetched are merged; the last one is
   * always delivered. What it throws becomes a process warning and does not end the call.
   */
  onProgress?: ((progress: Progress) => void) | undefined
  /**
   * How many threads to use; 0 takes as many as the machine offers. Results never depend on it.
   * @defaultValue `0`
   */
  threads?: number | undefined
  /**
   * Where all randomness of the call starts.
   * @defaultValue `0`
   */
  seed?: number | undefined
  /**
   * Refuse with `MEMORY_LIMIT` when the forecast passes this many bytes; 0 means no limit. What is no larger than its
   * input and its result has no forecast.
   * @defaultValue what the process may use: its container's limit, or the machine's memory
   */
  memoryLimit?: number | undefined
}

const TYPE_OF_KIND: Record<string, string> = {
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  choice: 'string',
}

const tables = native.parameterSpecs()

/** The engine's parameters of each kind of call: name, meaning, range and default of each. */
export const specs: Readonly<Record<keyof typeof tables, readonly ParameterSpec[]>> = tables

/** Whether a value is an object with named fields, as `{}` makes them, and no list, map, date or promise. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === '[object Object]'
}

/** An options argument: `undefined` means none. */
export function optionsOf(value: unknown, name = 'options'): Record<string, unknown> {
  if (value === undefined) return {}
  if (!isObject(value) || isHandle(value)) throw expected('an object', name, value)
  return value
}

/**
 * Nested options as a flat object of the engine's names. Names are the engine's to know: it refuses unknown ones
 * and says which one may be meant.
 */
export function flatten(options: Record<string, unknown>, table: readonly ParameterSpec[]): FlatOptions {
  // Without a prototype every name is a plain key, `__proto__` too.
  const flat: FlatOptions = Object.create(null)
  const groups = new Set(table.filter((s) => s.name.includes('.')).map((s) => s.name.split('.')[0]))
  const add = (name: string, value: unknown): void => {
    if (value === undefined) return
    // An object without keys, as a matrix is to JavaScript, must not vanish under an unknown name. There are no groups
    // in groups.
    const nests = !name.includes('.') && isObject(value) && Object.keys(value).length > 0 && !isHandle(value)
    if (groups.has(name) || nests) {
      if (!isObject(value)) throw expected('an object', name, value)
      for (const [key, inner] of Object.entries(value)) add(`${name}.${key}`, inner)
      return
    }
    if (name in flat) {
      const [group, key] = name.split('.')
      throw both(`'${name}'`, `${group}: { ${key} }`)
    }
    const spec = table.find((s) => s.name === name)
    if (spec && typeof value !== TYPE_OF_KIND[spec.kind]) throw expected(spec.takes, name, value)
    if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string')
      flat[name] = value
    // A value of no usable type under an unknown name: let the engine refuse the name.
    else flat[name] = typeof value
  }
  for (const [key, value] of Object.entries(options)) add(key, value)
  return flat
}

/** The error of two options of which one is meant. */
export function both(one: string, other: string): AquilaError {
  return new AquilaError('INVALID_ARGUMENT', `Expected either ${one} or ${other} but received both`)
}

/** A whole number in a range, or the fallback for `undefined`. */
export function integer(value: unknown, name: string, min: number, max: number, fallback: number): number {
  if (value === undefined) return fallback
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
    throw expected(`an integer from ${min} to ${max}`, name, value)
  return value
}

/** A truth value, or the fallback for `undefined`. */
export function flag(value: unknown, name: string, fallback: boolean): boolean {
  if (value === undefined) return fallback
  if (typeof value !== 'boolean') throw expected('true or false', name, value)
  return value
}

/** A value as JSON. */
export function json(value: unknown, name: string): string {
  let made: string | undefined
  try {
    made = JSON.stringify(value)
  } catch (cause) {
    // It has no end, or something in it is a BigInt.
    throw Object.assign(expected('a JSON value', name, value), { cause })
  }
  if (made === undefined) throw expected('a JSON value', name, value)
  return made
}

/** A text. */
export function text(value: unknown, name: string): string {
  if (typeof value !== 'string') throw expected('a string', name, value)
  return value
}

/** Refuses names that are not in the list. */
export function only(options: Record<string, unknown>, known: readonly string[]): void {
  for (const name of Object.keys(options))
    if (!known.includes(name))
      throw new AquilaError('UNKNOWN_OPTION', `Unknown option ${name}: known are ${known.join(', ')}`)
}
