// Ours against its peers, on any folder of features. See README.md beside this file.
//
//   npm run bench -- --features DIR [--sets a,b] [--peers pecos,omikuji] [--rounds 2] [--out bench/results]

import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { bootstrap, root, run } from '../scripts/lib/run.mjs'
import { command, count, list, optionsOf, Refusal, say } from './lib/command.mjs'
import { against, bestOf } from './lib/compare.mjs'
import { busyShare, commit, machine, today } from './lib/machine.mjs'
import { record } from './lib/record.mjs'
import { digits, markdown } from './lib/report.mjs'
import { panelsOf, scatter } from './lib/scatter.mjs'
import { setsOf } from './lib/sets.mjs'
import { data, OWN, PEERS, peerVersions, stopAll, turn } from './lib/systems.mjs'

const USAGE = `Ours against its peers, turn by turn, on the sets of a folder: NAME.{X,Y}.{trn,tst}.npz.

  npm run bench -- --features DIR [options]

  --features DIR   the folder of the sets; bench/generate.mjs makes one
  --sets a,b       only these sets (default: all of the folder)
  --peers a,b      of ${Object.keys(PEERS).join(', ')} (default: all but napkinxc-hinge)
  --rounds N       turns of each system; the best counts (default: 2)
  --threads N      threads of each system (default: 2)
  --queries N      rows for single queries (default: 500)
  --timeout S      seconds after which a step counts as failed; 0 waits for ever (default: 7200)
  --python PROGRAM the Python that has the peers (default: AQUILA_PYTHON, else python3)
  --out DIR        where results go (default: bench/results)
  --name NAME      the second part of their names (default: peers)
  --no-build       measure what is built already`

const OPTIONS = {
  features: { type: 'string' },
  sets: { type: 'string' },
  peers: { type: 'string' },
  rounds: { type: 'string', default: '2' },
  threads: { type: 'string', default: '2' },
  queries: { type: 'string', default: '500' },
  timeout: { type: 'string', default: '7200' },
  python: { type: 'string' },
  out: { type: 'string', default: join(root, 'bench/results') },
  name: { type: 'string', default: 'peers' },
  'no-build': { type: 'boolean', default: false },
}

function read() {
  const values = optionsOf(OPTIONS)
  if (!values) return undefined
  const { features, python } = values
  if (features === undefined) throw new Refusal('Expected --features DIR; --help tells more')
  if (!existsSync(features)) throw new Refusal(`${features}: no such folder`)
  const there = setsOf(features)
  if (there.length === 0) throw new Refusal(`${features}: no set with all of NAME.{X,Y}.{trn,tst}.npz`)
  if (!/^[\w.-]+$/.test(values.name))
    throw new Refusal('Expected letters, digits, dots and dashes for --name')
  const usual = Object.keys(PEERS).filter((name) => name !== 'napkinxc-hinge')
  return {
    features: resolve(features),
    out: resolve(values.out),
    name: values.name,
    python: python ?? process.env.AQUILA_PYTHON ?? 'python3',
    build: !values['no-build'],
    sets: values.sets === undefined ? there : list(values.sets, there, 'sets'),
    peers: values.peers === undefined ? usual : list(values.peers, Object.keys(PEERS), 'peers'),
    rounds: count(values, 'rounds', 1),
    threads: count(values, 'threads', 1),
    queries: count(values, 'queries', 1),
    timeout: count(values, 'timeout', 0),
  }
}

/** What a reader types for the same run; folders of this machine say nothing to them. */
function commandOf({ sets, peers, rounds, threads, queries }) {
  const parts = ['npm run bench -- --features DIR', `--sets ${sets.join(',')}`, `--peers ${peers.join(',')}`]
  return [...parts, `--rounds ${rounds}`, `--threads ${threads}`, `--queries ${queries}`].join(' ')
}

async function write(results, folder, name) {
  const order = [...results.own, ...results.peers].map(({ name }) => name)
  return record(join(folder, `${results.date}-${name}`), {
    svg: scatter(panelsOf(results), order),
    md: markdown(results, `${results.date}-${name}.svg`),
    json: `${JSON.stringify(results, null, 1)}\n`,
  })
}

/** All turns of all systems on one set; whoever fails once is left out of the further rounds. */
async function measure(set, systems, options, onLoad) {
  const state = new Map(systems.map(({ name, status }) => [name, { name, status, rounds: [] }]))
  const present = systems.filter(({ status }) => status === 'measured')
  for (let round = 0; round < options.rounds; round++) {
    // Another one begins each round: who comes first finds a cooler processor and a colder disk cache.
    const order = present.map((_, i) => present[(i + round) % present.length].name)
    for (const name of order) {
      const system = state.get(name)
      if (system.status !== 'measured') continue
      const busy = await busyShare()
      onLoad(busy)
      try {
        const found = await turn(name, { ...options, name: set.name })
        system.rounds.push({ round, busy, ...found })
        const p = [1, 3, 5].map((k) => found.precision[k].toFixed(2)).join('/')
        const micros = digits(1000 * found.singleMedianMs)
        say(
          `${set.name} round ${round + 1} ${name}: ${digits(found.trainSeconds)} s, P@1/3/5 ${p}, ${digits(found.batchMsPerRow)} ms/row, single ${micros} µs`,
        )
      } catch (error) {
        if (name in OWN) throw error
        system.status = 'failed'
        system.reason = error.message
        say(`${set.name} round ${round + 1} ${name}: failed: ${error.message}`)
      }
    }
  }
  const all = [...state.values()]
  for (const system of all) if (system.status === 'measured') system.best = bestOf(system.rounds)
  const own = all.filter(({ name }) => name in OWN)
  for (const system of all)
    if (system.best && !own.includes(system)) system.against = against(own, system.best, set.testRows)
  return all
}

async function main() {
  const options = read()
  if (!options) return say(USAGE)
  bootstrap()
  if (options.build) run(process.execPath, [join(root, 'scripts/build.mjs')])

  const folder = await mkdtemp(join(tmpdir(), 'aquila-bench-'))
  const stop = () => {
    stopAll()
    rm(folder, { recursive: true, force: true, maxRetries: 3 }).finally(() => process.exit(130))
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    const theirs = await peerVersions(options.python, folder)
    const peers = options.peers.map((name) => ({ name, ...PEERS[name] }))
    const own = Object.entries(OWN).map(([name, { note }]) => ({ name, note }))
    const systems = [
      ...own.map(({ name }) => ({ name, status: 'measured' })),
      ...peers.map((peer) => ({
        name: peer.name,
        status: theirs[peer.package] ? 'measured' : 'not installed',
      })),
    ]
    for (const { name, status } of systems) if (status !== 'measured') say(`${name}: ${status}`)

    const { rounds, threads, queries, timeout } = options
    const fixed = { k: 10, beam: 10, repeat: 3, singleRounds: 3 }
    const results = {
      format: 1,
      date: today(),
      command: commandOf(options),
      commit: commit(),
      machine: { ...machine(), busiest: 0 },
      versions: { ...(await data('versions')), ...theirs },
      options: { rounds, threads, queries, timeout, ...fixed },
      own,
      peers,
      sets: [],
    }
    const onLoad = (busy) => {
      if (busy > 0.1) say(`the machine is busy with other work: ${(100 * busy).toFixed(0)} %`)
      results.machine.busiest = Math.max(results.machine.busiest, busy)
    }
    const text = systems.some(({ name, status }) => name.startsWith('omikuji') && status === 'measured')
    let base
    for (const name of options.sets) {
      const place = join(folder, 'set')
      await mkdir(place)
      const set = await data('prepare', options.features, name, place, text ? 'text' : '')
      const turns = { folder: place, python: options.python, threads, queries, timeout, ...fixed, rounds }
      results.sets.push({ ...set, systems: await measure(set, systems, turns, onLoad) })
      await rm(place, { recursive: true })
      // After each set: a long run that ends early keeps what it has measured.
      base = await write(results, options.out, options.name)
    }
    say(`\n${markdown(results)}\n${base}.{json,md,svg}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

await command('bench', main)
