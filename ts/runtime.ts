// What this build is and runs on.

import { native } from './native.js'

/** Instruction sets. */
export interface Simd {
  /** The one that the kernels use. */
  used: string
  /** All that this processor can run. */
  available: string[]
}

/** Versions of what runs. */
export interface Versions {
  /** The engine's, also written into model files. */
  aquila: string
  /** Node's. */
  node: string
}

/** How many threads a call takes when it is not told. */
export function threads(): number {
  return native.runtime().threads
}

/** The instruction set that the kernels use. The environment variable `AQUILA_ISA` lowers it. */
export function simd(): Simd {
  const { simd: used, available } = native.runtime()
  return { used, available }
}

/** Versions of the engine and of Node. */
export function versions(): Versions {
  return { aquila: native.runtime().version, node: process.versions.node }
}
