// How much memory work may take.

import { totalmem } from 'node:os'

let known: number | undefined

/** What the process may use: its container's limit where there is one, else the machine's memory. In bytes. */
export function machineMemory(): number {
  // Asked once, for the system looks into files for it: 0 or undefined where nothing constrains the process.
  known ??= Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())
  return known
}
