// Classes whose objects this library alone makes: a constructor that is private in TypeScript is open in JavaScript.

import { type InspectOptionsStylized, inspect } from 'node:util'
import { AquilaError } from './errors.js'

/** What the constructors of such classes are called with; nobody outside can have it. */
export const SEAL: unique symbol = Symbol('aquila')

/** Refuses a `new` from outside, and names the functions that make such an object. */
export function sealed(seal: unknown, name: string, makers: string): void {
  if (seal !== SEAL)
    throw new AquilaError('INVALID_ARGUMENT', `${name} is not made by new ${name}(…): use ${makers}`)
}

/** The key under which such an object holds what cannot be cloned. */
const MARK = 'notCloneable'

/** Shows an object as Node does, without the mark. */
function shown(this: object, depth: number, options: InspectOptionsStylized, show: typeof inspect): string {
  const { name } = this.constructor
  if (depth < 0) return options.stylize(`[${name}]`, 'special')
  const rest = Object.fromEntries(Object.entries(this).filter(([key]) => key !== MARK))
  return `${name} ${show(rest, options)}`
}

/**
 * Makes `structuredClone` and `postMessage` refuse an object of ours with a reason. They copy an object's enumerable
 * properties and leave its class behind: of memory that JavaScript does not see they would make an empty shell. A symbol
 * is what they cannot copy, and their error quotes it. It is kept out of `console.log`, and JSON leaves symbols out.
 */
export function uncloneable(object: object, reason: symbol): void {
  Object.defineProperty(object, MARK, { value: reason, enumerable: true })
  Object.defineProperty(object, inspect.custom, { value: shown })
}

/** Whether this is such an object, and no bag of options. */
export const isHandle = (value: object): boolean => Object.hasOwn(value, MARK)
