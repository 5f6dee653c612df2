// The native library. Its types stay inside the facade.

import { createRequire } from 'node:module'
import { AquilaError } from './errors.js'
import { bundled, unloadable } from './platform.js'

type Binding = typeof import('./native/binding.cjs')

/** What the package says of itself; `undefined` where this file is no longer inside the package. */
function manifest(require: NodeJS.Require): { napi: { targets: string[] } } | undefined {
  try {
    const found = require('../package.json')
    return found.name === 'aquila-xmc' ? found : undefined
  } catch {
    return undefined
  }
}

function load(): Binding {
  // In a bundle of CommonJS modules there is no such URL.
  const { url } = import.meta
  if (url === undefined) throw bundled()
  const require = createRequire(url)
  try {
    // From ts/ and from dist/ alike, the loader is in ts/native.
    return require('../ts/native/binding.cjs') as Binding
  } catch (cause) {
    if (cause instanceof AquilaError) throw cause
    const own = manifest(require)
    throw own ? unloadable(own.napi.targets, cause) : bundled(cause)
  }
}

/** The loaded native library. */
export const native: Binding = load()
