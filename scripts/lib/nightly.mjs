// The nightly tool-chain, which sanitizers and fuzzing need and nothing else does.
import { spawnSync } from 'node:child_process'

/** What to say where it is missing. */
export const wantsNightly = 'it needs a nightly tool-chain (rustup toolchain install nightly)'

/** The host's target by the nightly tool-chain; undefined where there is none. */
export function nightly() {
  const { status, stdout } = spawnSync('rustc', ['+nightly', '-vV'], { encoding: 'utf8' })
  return status === 0 ? /^host: (.*)$/m.exec(stdout)?.[1] : undefined
}
