// Where and with what a measurement was made.

import { spawnSync } from 'node:child_process'
import { cpus, platform, release, totalmem } from 'node:os'
import { arch } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { root } from '../../scripts/lib/run.mjs'

/** What a program prints, or `undefined` where it cannot be run. */
function ask(program, args) {
  const { status, stdout } = spawnSync(program, args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

/** The machine, without its name. */
export function machine() {
  const cores = cpus()
  return {
    cpu: cores[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    memoryBytes: totalmem(),
    system: `${platform()} ${release()} ${arch}`,
  }
}

/** The commit that is measured, and whether files differ from it. Earlier results and texts change nothing. */
export function commit() {
  const changed = ask('git', ['status', '--porcelain', '--', '.', ':!bench/results', ':!*.md'])
  return {
    hash: ask('git', ['rev-parse', 'HEAD']) ?? 'unknown',
    dirty: changed === undefined ? null : changed !== '',
  }
}

/** Versions of what ours is built with and runs on, given what the package tells of itself. */
export function versions(runtime) {
  const { aquila, node } = runtime.versions()
  return { aquila, simd: runtime.simd().used, node, rust: ask('rustc', ['--version']) }
}

function ticks() {
  let [idle, all] = [0, 0]
  for (const { times } of cpus()) {
    idle += times.idle
    all += Object.values(times).reduce((sum, time) => sum + time, 0)
  }
  return { idle, all }
}

/** The share of the processors, 0 to 1, that is at work while we only wait: other people's load. */
export async function busyShare(ms = 400) {
  const before = ticks()
  await sleep(ms)
  const after = ticks()
  const all = after.all - before.all
  return all > 0 ? 1 - (after.idle - before.idle) / all : 0
}

/** Today as YYYY-MM-DD. */
export function today() {
  return new Date().toISOString().slice(0, 10)
}
