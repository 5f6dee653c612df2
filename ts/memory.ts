// How much memory work may take.

import { totalmem } from 'node:os'

/** What the process may use: its container's limit where there is one, else the machine's memory. In bytes. */
export function machineMemory(): number {
  // 0 or undefined where nothing constrains the process or the system does not say.
  const constrained = process.constrainedMemory() || Number.POSITIVE_INFINITY
  return Math.min(constrained, totalmem())
}
