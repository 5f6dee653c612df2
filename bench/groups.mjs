// Labels of groups: what a model reaches that learned from them, by rule of grouping and by method, beside one that
// learned from the samples' own labels. See README.md beside this file.
//
//   node bench/groups.mjs --features DIR [--data DIR] [--sets a,b] [--rules random:4,kmeans:8] [--seeds 5]

import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from '../scripts/lib/run.mjs'
import { built } from './lib/built.mjs'
import { command, count, list, optionsOf, Refusal, say } from './lib/command.mjs'
import { groupsBy, RULES, ruleOf } from './lib/grouping.mjs'
import { markdown, pictures } from './lib/groups-report.mjs'
import { circumstances, record } from './lib/record.mjs'
import { RANKS } from './lib/score.mjs'
import { file, setsOf } from './lib/sets.mjs'

const USAGE = `What models learn from labels of groups, on the sets of a folder: NAME.{X,Y}.{trn,tst}.npz.

  node bench/groups.mjs --features DIR [options]

  --features DIR   the folder of the sets
  --data DIR       where NAME.train.jsonl.gz have the groups of the rule natural; without it the rule is left out
  --sets a,b       only these sets (default: all of the folder)
  --rules a,b      how samples are grouped (default: ${RULES.join(',')})
  --methods a,b    of union, eagle-0, eagle, refine (default: all)
  --seeds N        seeds 0 to N − 1, each for groups and trainings (default: 5)
  --merge HOW      set: bags say that some sample has a label; list: how many do (default: set)
  --threads N      threads (default: 2)
  --resume FILE    go on with these results: what they have is not measured again
  --out DIR        where results go (default: bench/results)
  --name NAME      the second part of their names (default: groups)`

const METHODS = ['union', 'eagle-0', 'eagle', 'refine']

function read() {
  const values = optionsOf({
    features: { type: 'string' },
    data: { type: 'string' },
    sets: { type: 'string' },
    rules: { type: 'string', default: RULES.join(',') },
    methods: { type: 'string', default: METHODS.join(',') },
    seeds: { type: 'string', default: '5' },
    merge: { type: 'string', default: 'set' },
    threads: { type: 'string', default: '2' },
    resume: { type: 'string' },
    out: { type: 'string', default: join(root, 'bench/results') },
    name: { type: 'string', default: 'groups' },
  })
  if (!values) return undefined
  const { features, data, resume, merge, name } = values
  if (features === undefined) throw new Refusal('Expected --features DIR; --help tells more')
  for (const path of [features, data, resume])
    if (path !== undefined && !existsSync(path)) throw new Refusal(`${path}: no such file or folder`)
  const there = setsOf(features)
  if (there.length === 0) throw new Refusal(`${features}: no set with all of NAME.{X,Y}.{trn,tst}.npz`)
  if (!['set', 'list'].includes(merge))
    throw new Refusal(`Expected set or list for --merge but received ${merge}`)
  if (!/^[\w.-]+$/.test(name)) throw new Refusal('Expected letters, digits, dots and dashes for --name')
  const rules = values.rules.split(',').filter((rule) => rule !== '')
  rules.forEach(ruleOf)
  return {
    features: resolve(features),
    data: data && resolve(data),
    resume: resume && resolve(resume),
    out: resolve(values.out),
    name,
    sets: values.sets === undefined ? there : list(values.sets, there, 'sets'),
    rules: [...new Set(rules)],
    methods: list(values.methods, METHODS, 'methods'),
    seeds: count(values, 'seeds', 1),
    merge,
    threads: count(values, 'threads', 1),
  }
}

/** What a reader types for the same results; folders of this machine say nothing to them. */
const commandOf = ({ data, sets, rules, methods, seeds, merge, threads }) =>
  [
    `node bench/groups.mjs --features DIR${data ? ' --data DIR' : ''} --sets ${sets.join(',')}`,
    `--rules ${rules.join(',')} --methods ${methods.join(',')}`,
    `--seeds ${seeds} --merge ${merge} --threads ${threads}`,
  ].join(' ')

/** Results to go on with, or empty ones. */
function begin(options, runtime) {
  const head = circumstances(commandOf(options), runtime)
  const { merge, threads } = options
  if (!options.resume) return { ...head, options: { merge, threads }, sets: [] }
  const before = JSON.parse(readFileSync(options.resume, 'utf8'))
  if (before.commit.hash !== head.commit.hash)
    throw new Refusal(`${options.resume}: of commit ${before.commit.hash}, and this is ${head.commit.hash}`)
  if (before.options.merge !== merge)
    throw new Refusal(`${options.resume}: of --merge ${before.options.merge}`)
  return { ...before, command: head.command }
}

/** The text of results: a run a line, for there are thousands. */
function text(results) {
  const head = JSON.stringify({ ...results, sets: undefined }, null, 1).replace(/\n\}$/, '')
  const sets = results.sets.map(({ runs, ...set }) => {
    const lines = runs.map((run) => `   ${JSON.stringify(run)}`).join(',\n')
    return `${JSON.stringify(set).slice(0, -1)}, "runs": [\n${lines}\n ]}`
  })
  return `${head},\n "sets": [\n ${sets.join(',\n ')}\n]}\n`
}

const rounded = (value) => Number(value.toFixed(5))
/** Of a report, in per cent. */
const percents = (report) =>
  Object.fromEntries(
    ['precision', 'ndcg', 'psp'].map((name) => [name, RANKS.map((k) => rounded(100 * report[name][k]))]),
  )

/** Trains by one method, and measures the model on the test rows. */
async function measure({ XLinear, eagle, evaluate }, method, { x, y, xt, yt, groups, bags }, call) {
  const since = performance.now()
  const train = {
    oracle: () => XLinear.train(x, y, {}, call),
    'eagle-0': async () => {
      const assigned = await eagle.assign(x, groups, bags, { iterations: 0 }, call)
      return XLinear.train(x, assigned.y, {}, call)
    },
  }
  const learn = train[method] ?? (() => XLinear.trainGroups(x, groups, bags, { group: { method } }, call))
  const model = await learn()
  const seconds = (performance.now() - since) / 1000
  const top = await model.predict(xt, { k: Math.max(...RANKS) }, { threads: call.threads })
  model.close()
  return { seconds: rounded(seconds), ...percents(await evaluate(top, yt, { propensity: { trainY: y } })) }
}

/** All runs of one set that are not there yet; `save` is called whenever some were made. */
async function measureSet(library, set, matrices, options, save) {
  const known = new Set(set.runs.map(({ rule, seed, method }) => `${rule} ${seed} ${method}`))
  const missing = (rule, seed, methods) => methods.filter((method) => !known.has(`${rule} ${seed} ${method}`))
  const add = async (more, run) => {
    set.runs.push({ ...more, ...run })
    const p = run.precision.map((v) => v.toFixed(2)).join('/')
    say(
      `${set.name} ${more.rule} seed ${more.seed} ${more.method}: P@1/3/5 ${p}, ${run.seconds.toFixed(2)} s`,
    )
  }
  for (let seed = 0; seed < options.seeds; seed++) {
    const call = { threads: options.threads, seed }
    for (const method of missing('none', seed, ['oracle']))
      await add({ rule: 'none', seed, method }, await measure(library, method, matrices, call))
    for (const rule of options.rules) {
      const methods = missing(rule, seed, options.methods)
      if (methods.length === 0) continue
      const groups = await groupsBy(
        rule,
        { ...library, x: matrices.x, name: set.name, data: options.data },
        call,
      )
      if (!groups) continue
      const bags = await groups.aggregate(matrices.y, { merge: options.merge }, call)
      const { size, labelsOfGroup, likeness } = (await groups.advise(matrices.x, bags, call)).statistics
      const about = {
        groups: groups.size,
        size,
        labelsOfGroup: rounded(labelsOfGroup),
        likeness: rounded(likeness),
      }
      for (const method of methods) {
        const found = await measure(library, method, { ...matrices, groups, bags }, call)
        await add({ rule, seed, method, ...about }, found)
      }
      groups.close()
      bags.close()
      await save()
    }
    await save()
  }
}

await command('groups', async () => {
  const options = read()
  if (!options) return say(USAGE)
  const library = await built()
  const results = begin(options, library.runtime)
  const base = options.resume?.replace(/\.json$/, '') ?? join(options.out, `${results.date}-${options.name}`)
  const place = base.slice(base.lastIndexOf('/') + 1)
  for (const name of options.sets) {
    const parts = ['X.trn', 'Y.trn', 'X.tst', 'Y.tst'].map((part) => file(options.features, name, part))
    const [x, y, xt, yt] = await Promise.all(parts.map((path) => library.readNpz(path)))
    let set = results.sets.find((one) => one.name === name)
    if (!set) {
      set = { name, rows: x.rows, testRows: xt.rows, features: x.cols, labels: y.cols, runs: [] }
      results.sets.push(set)
    }
    await measureSet(library, set, { x, y, xt, yt }, options, () => record(base, { json: text(results) }))
    for (const matrix of [x, y, xt, yt]) matrix.close()
    // After each set: a long run that ends early shows what it has measured.
    const drawn = pictures(results)
    for (const [part, svg] of Object.entries(drawn)) await record(`${base}${part}`, { svg })
    await record(base, { md: markdown(results, place, Object.keys(drawn)) })
  }
  say(`${base}.{json,md,svg}`)
})
