// The native library. Its types stay inside the facade.

import { createRequire } from 'node:module'

type Binding = typeof import('./native/binding.cjs')

function load(): Binding {
  // From ts/ and from dist/ alike, the loader is in ts/native.
  const require = createRequire(import.meta.url)
  return require('../ts/native/binding.cjs') as Binding
}

/** The loaded native library. */
export const native: Binding = load()
