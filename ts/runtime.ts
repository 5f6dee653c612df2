// What this build is and runs on.

import { native } from './native.js'

/** How many threads a call takes when it is not told. */
export function threads(): number {
  return native.runtime().threads
}

/** The instruction set that the kernels use, and all that this processor can run. */
export function simd(): { used: string; available: string[] } {
  const { simd: used, available } = native.runtime()
  return { used, available }
}

/** Versions of the engine and of Node. */
export function versions(): { aquila: string; node: string } {
  return { aquila: native.runtime().version, node: process.versions.node }
}
