// What the tests share: a small problem with a known answer, child processes, folders of their own.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AquilaError, Csr, type ErrorCode, type Groups, XLinear } from 'aquila-xmc'
import { afterAll, expect } from 'vitest'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const cliPath = join(root, 'dist/cli/main.js')

/** Random numbers from 0 to 1, the same on every run. */
export function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A matrix from rows of `[column, value]`. */
export function matrix(rows: [number, number][][], cols: number): Csr {
  const indptr = new Uint32Array(rows.length + 1)
  rows.forEach((row, i) => {
    indptr[i + 1] = (indptr[i] as number) + row.length
  })
  const sorted = rows.flatMap((row) => [...row].sort((a, b) => a[0] - b[0]))
  return Csr.from({
    rows: rows.length,
    cols,
    indptr,
    indices: Uint32Array.from(sorted, ([j]) => j),
    values: Float32Array.from(sorted, ([, v]) => v),
  })
}

export type Row = [number, number][]

/** The rows of a matrix as `[column, value]`. */
export function rowsOf(m: Csr): Row[] {
  const { indptr, indices, values } = m.toArrays()
  const entries = [...indices].map((j, n): [number, number] => [j, values[n] as number])
  return Array.from({ length: m.rows }, (_, i) => entries.slice(indptr[i], indptr[i + 1]))
}

/** The groups of each sample. */
export const groupsOf = (groups: Groups) => rowsOf(groups.memberships).map((row) => row.map(([j]) => j))

/** The samples of each group. */
export function membersOf(groups: Groups): number[][] {
  const members = Array.from({ length: groups.size }, (): number[] => [])
  groupsOf(groups).forEach((of, i) => {
    for (const j of of) members[j]?.push(i)
  })
  return members
}

export interface Problem {
  x: Csr
  y: Csr
  /** The labels of each row. */
  truth: number[][]
}

/** Rows whose features tell their labels: each label has three features of its own, and there is some noise. */
export function problem({ rows = 600, labels = 40, noise = 20, seed = 1 } = {}): Problem {
  const next = random(seed)
  const pick = (n: number) => Math.floor(next() * n)
  const features = labels * 3 + noise
  const xRows: [number, number][][] = []
  const truth: number[][] = []
  for (let i = 0; i < rows; i++) {
    // The first rows go through all labels, so that none is without rows.
    const own = new Set([i % labels])
    while (own.size < 1 + pick(3)) own.add(pick(labels))
    const row = new Map<number, number>()
    for (const label of own) for (let f = 0; f < 3; f++) row.set(label * 3 + f, 0.5 + next())
    for (let f = 0; f < 3; f++) row.set(labels * 3 + pick(noise), next())
    xRows.push([...row])
    truth.push([...own].sort((a, b) => a - b))
  }
  const y = matrix(
    truth.map((own) => own.map((label): [number, number] => [label, 1])),
    labels,
  )
  return { x: matrix(xRows, features), y, truth }
}

/** A problem with names and metadata, learned. */
export async function learned(): Promise<{ data: Problem; model: XLinear }> {
  const data = problem()
  const model = await XLinear.train(
    data.x,
    data.y,
    {
      tree: { maxLeaf: 8, arity: 4 },
      labelNames: Array.from({ length: 40 }, (_, i) => `label ${i}`),
      metadata: { source: 'test', at: [1, 2] },
    },
    { threads: 2, seed: 3 },
  )
  return { data, model }
}

/** A problem of some size that can be learned. */
export function bigProblem(): Problem {
  return problem({ rows: 40_000, labels: 4_000, noise: 20_000, seed: 7 })
}

/** Rows that tell nothing of their labels: with {@link ENDLESS} its training takes minutes. */
export function hardProblem(): { x: Csr; y: Csr } {
  const [rows, features, labels] = [20_000, 1_000, 1_000]
  const next = random(11)
  const some = (n: number, below: number): [number, number][] => {
    const picked = new Set<number>()
    while (picked.size < n) picked.add(Math.floor(next() * below))
    return [...picked].map((id) => [id, 0.1 + next()])
  }
  const x = matrix(
    Array.from({ length: rows }, () => some(40, features)),
    features,
  )
  const y = matrix(
    Array.from({ length: rows }, () => some(2, labels)),
    labels,
  )
  return { x, y }
}

/** Solver options under which a training does not end by itself in a test's time. */
export const ENDLESS = { eps: 1e-6, maxPasses: 10_000, cp: 1e4, cn: 1e4 } as const

/** Expects an error of this code whose message matches. */
export async function expectError(
  work: () => unknown,
  code: ErrorCode,
  message: RegExp | string = /./,
): Promise<AquilaError> {
  let caught: unknown
  try {
    await work()
  } catch (error) {
    caught = error
  }
  expect(caught, `expected ${code}`).toBeInstanceOf(AquilaError)
  const error = caught as AquilaError
  expect(`${error.code}: ${error.message}`).toContain(code)
  expect(error.message).toMatch(message)
  return error
}

/**
 * The most milliseconds that a call goes on after it was aborted, over several moments of aborting. Of each moment the
 * best of three tries counts, for other work on the machine can only make it slower.
 */
export async function slowestEnd(
  moments: readonly number[],
  start: (signal: AbortSignal) => Promise<unknown>,
): Promise<number> {
  let slowest = 0
  for (const moment of moments) {
    let best = Number.POSITIVE_INFINITY
    for (let tried = 0; tried < 3 && best > 50; tried++) {
      const controller = new AbortController()
      const reason = new Error('enough')
      const running = start(controller.signal)
      const ended = running.then(
        () => undefined,
        (error) => error,
      )
      await sleep(moment)
      const since = performance.now()
      controller.abort(reason)
      const error = await ended
      // What had ended by then says nothing.
      best = Math.min(best, error === undefined ? 0 : performance.now() - since)
      if (error !== undefined) expect(error).toBe(reason)
    }
    slowest = Math.max(slowest, best)
  }
  return slowest
}

/** A folder that goes away after the tests of this file. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'aquila-test-'))
  afterAll(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** A child process: `ended` resolves when it is over. */
export function start(args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], ...options })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  )
  return { child, ended }
}

/** Runs a piece of an ES module in a process of its own, with the library in scope as `aquila`. */
export function script(code: string, flags: string[] = []): Promise<Ended> {
  const prelude = `import * as aquila from ${JSON.stringify(join(root, 'dist/index.js'))};\n`
  return start([...flags, '--input-type=module', '--eval', prelude + code]).ended
}

/** Runs the command line. */
export function cli(...args: string[]): Promise<Ended> {
  return start([cliPath, ...args]).ended
}

export const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Fails unless the text is one element whose tags all close, with quoted attributes and no stray characters. */
export function expectWellFormed(xml: string): void {
  const open: string[] = []
  let rest = xml
  while (rest !== '') {
    const tag = /^<(\/?)([a-z]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/i.exec(rest)
    const text = /^[^<]+/.exec(rest)
    const found = (tag ?? text)?.[0]
    expect(found, `at ${rest.slice(0, 60)}`).toBeDefined()
    expect((found as string).replaceAll(/&(amp|lt|gt|quot);/g, '')).not.toContain('&')
    if (tag?.[1]) expect(open.pop()).toBe(tag[2])
    else if (tag && !tag[4]) open.push(tag[2] as string)
    else if (text) expect(open.length > 0 || text[0].trim() === '').toBe(true)
    rest = rest.slice((found as string).length)
  }
  expect(open).toEqual([])
}
