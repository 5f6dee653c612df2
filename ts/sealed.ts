// Classes whose objects this library alone makes: a constructor that is private in TypeScript is open in JavaScript.

import { AquilaError } from './errors.js'

/** What the constructors of such classes are called with; nobody outside can have it. */
export const SEAL: unique symbol = Symbol('aquila')

/** Refuses a `new` from outside, and names the functions that make such an object. */
export function sealed(seal: unknown, name: string, makers: string): void {
  if (seal !== SEAL)
    throw new AquilaError('INVALID_ARGUMENT', `${name} is not made by new ${name}(…): use ${makers}`)
}
