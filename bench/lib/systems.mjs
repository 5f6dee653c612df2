// The systems that are compared, and one turn of each: train, predict the test rows, ask single queries.

import { spawn } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../../scripts/lib/run.mjs'
import { file } from './sets.mjs'

const cli = join(root, 'dist/cli/main.js')
const peersScript = fileURLToPath(new URL('../peers.py', import.meta.url))
const dataScript = fileURLToPath(new URL('./data.mjs', import.meta.url))

/** Our own name in results, that of a training with its defaults. */
export const OURS = 'aquila'

/** All of ours, by what is set beyond the defaults; the first whose answers are as good is compared with a peer. */
export const OWN = {
  [OURS]: { set: [], note: 'its defaults' },
  'aquila-2': { set: ['overlap.copies=2'], note: 'two leaves a label: `--set overlap.copies=2`' },
}

/** Peers by the name that `--peers` takes: the package they come from, and what a reader should know of them. */
export const PEERS = {
  pecos: { package: 'pecos', note: 'PECOS XR-Linear, its defaults (one tree)' },
  omikuji: { package: 'omikuji', note: 'its defaults (three trees)' },
  'omikuji-1': { package: 'omikuji', note: 'one tree, else its defaults' },
  napkinxc: { package: 'napkinxc', note: 'PLT, its defaults (one tree, logistic, exact search)' },
  'napkinxc-hinge': { package: 'napkinxc', note: 'PLT, squared hinge and C = 1 as the others have it' },
}

const children = new Set()
let stopped = false

/** Ends what is running; whoever waits for it waits for ever. */
export function stopAll() {
  stopped = true
  for (const child of children) child.kill('SIGKILL')
}

/** Runs a program; resolves with what it printed, rejects with the end of its complaint. */
export function call(program, args, { env, timeout = 0 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    children.add(child)
    let [out, said, late] = ['', '', false]
    child.stdout.on('data', (chunk) => {
      out += chunk
    })
    child.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-4000)
    })
    const timer =
      timeout > 0 &&
      setTimeout(() => {
        late = true
        child.kill('SIGKILL')
      }, 1000 * timeout)
    const end = (settle, value) => {
      clearTimeout(timer)
      children.delete(child)
      if (!stopped) settle(value)
    }
    child.on('error', (error) => end(reject, error))
    child.on('close', (code, signal) => {
      if (late) end(reject, new Error(`took more than ${timeout} s`))
      else if (code === 0) end(resolve, out)
      else end(reject, new Error(said.trim().split('\n').at(-1) || `ended with ${signal ?? `code ${code}`}`))
    })
  })
}

/** A piece of work of `data.mjs`. */
export async function data(...args) {
  return JSON.parse(await call(process.execPath, [dataScript, ...args.map(String)]))
}

/** Versions of the peers, of Python and of what they stand on; nothing where there is no such Python. */
export async function peerVersions(python, folder) {
  const result = join(folder, 'versions.json')
  try {
    await call(python, [peersScript, 'versions', '--result', result])
    return JSON.parse(await readFile(result, 'utf8'))
  } catch {
    return {}
  }
}

/** Runs a verb of the command line; what it printed. */
export const aquila = async (args, timeout, env) =>
  JSON.parse(await call(process.execPath, [cli, ...args.map(String), '--json'], { timeout, env }))

/** Instruction sets that most processors stop at, as `AQUILA_ISA` and as the measures name them. */
const LESSER = { avx2: 'Avx2', scalar: 'Scalar' }

/** One turn of ours, through the command line. */
async function turnOfOurs(
  system,
  { name, folder, threads, k, beam, queries, repeat, singleRounds, timeout },
) {
  const [x, y, xt] = ['X.trn', 'Y.trn', 'X.tst'].map((part) => file(folder, name, part))
  const [model, answers] = [join(folder, 'model.aquila'), join(folder, 'answers.npz')]
  const common = ['--model', model, '--x', xt, '--k', k, '--beam', beam, '--threads', threads]
  const start = performance.now()
  const more = OWN[system].set.flatMap((set) => ['--set', set])
  const trained = await aquila(
    ['train', '--x', x, '--y', y, '--out', model, '--threads', threads, '--seed', 0, ...more],
    timeout,
  )
  const trainProcessSeconds = (performance.now() - start) / 1000
  const predicted = await aquila(['predict', ...common, '--repeat', repeat, '--out', answers], timeout)
  const { singleMs } = await aquila(
    ['bench', ...common, '--single', '--queries', queries, '--rounds', singleRounds],
    timeout,
  )
  const lesser = {}
  for (const [isa, suffix] of Object.entries(LESSER)) {
    const env = { AQUILA_ISA: isa }
    const asked = ['--queries', queries, '--rounds', singleRounds]
    const { simd, singleMs } = await aquila(['bench', ...common, ...asked], timeout, env)
    // A processor that lacks the set has used another.
    if (simd !== isa) continue
    const { msPerRow } = await aquila(
      ['predict', ...common, '--repeat', repeat, '--out', join(folder, 'lesser.npz')],
      timeout,
      env,
    )
    lesser[`batchMsPerRow${suffix}`] = msPerRow
    lesser[`singleMedianMs${suffix}`] = singleMs.median
  }
  const measured = {
    trainSeconds: trained.seconds.total,
    trainStages: trained.seconds,
    trainProcessSeconds,
    trainPeakBytes: trained.peakMemoryBytes,
    modelBytes: trained.modelBytes,
    batchMsPerRow: predicted.msPerRow,
    predictPeakBytes: predicted.peakMemoryBytes,
    singleMedianMs: singleMs.median,
    singleP99Ms: singleMs.p99,
    singleMeanMs: singleMs.mean,
    ...lesser,
  }
  return { measured, model, answers }
}

/** One turn of a peer, through Python. */
async function turnOfPeer(system, options) {
  const { name, folder, python, threads, k, beam, queries, repeat, singleRounds, timeout } = options
  const [model, answers, result] = ['model', 'answers.i32', 'result.json'].map((part) => join(folder, part))
  const step = async (verb, args) => {
    // Numeric libraries below the peers must not take more threads than the peers are told to.
    const env = { OMP_NUM_THREADS: threads, OPENBLAS_NUM_THREADS: threads, MKL_NUM_THREADS: threads }
    const common = ['--model', model, '--threads', threads, '--seed', 0, '--result', result]
    await call(python, [peersScript, verb, system, ...common, ...args].map(String), { env, timeout })
    return JSON.parse(await readFile(result, 'utf8'))
  }
  const [x, y, xt] = ['X.trn', 'Y.trn', 'X.tst'].map((part) => file(folder, name, part))
  const start = performance.now()
  const trained = await step('train', ['--x', x, '--y', y, '--text', join(folder, `${name}.trn.txt`)])
  const trainProcessSeconds = (performance.now() - start) / 1000
  const asked = await step('predict', [
    ...['--x', xt, '--out', answers, '--k', k, '--beam', beam],
    ...['--repeat', repeat, '--queries', queries, '--rounds', singleRounds],
  ])
  return { measured: { ...trained, trainProcessSeconds, ...asked }, model, answers }
}

/** One turn of a system on a prepared set: its figures, with the quality that our scorer finds in its answers. */
export async function turn(system, options) {
  const { measured, model, answers } =
    system in OWN ? await turnOfOurs(system, options) : await turnOfPeer(system, options)
  const quality = await data('score', file(options.folder, options.name, 'Y.tst'), answers, options.k)
  for (const path of [model, answers]) await rm(path, { recursive: true })
  return { ...measured, precision: quality.precision, ndcg: quality.ndcg }
}
