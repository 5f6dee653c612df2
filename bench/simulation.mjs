// The simulation of EAGLE's Theorem 1: what giving labels to samples is worth, by how unlike a group's samples are.
//
//   node bench/simulation.mjs [--rounds 200] [--seed 0] [--out bench/results]
//
// The work is an example of the engine, crates/aquila/examples/label_assignment.rs, which says what is simulated. A
// picture of another shape than the paper's ends the run with exit code 1 and no file.

import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { root } from '../scripts/lib/run.mjs'
import { built } from './lib/built.mjs'
import { command, count, optionsOf, Refusal, say } from './lib/command.mjs'
import { curves } from './lib/curves.mjs'
import { circumstances, inWords, record, table } from './lib/record.mjs'

const USAGE = 'node bench/simulation.mjs [--rounds 200] [--seed 0] [--out bench/results]'
const NAMES = { as: 'AS', noAs: 'NoAS' }
const TASKS = {
  regression: { title: 'Regression', y: 'RMS / oracle’s', alike: 'falls' },
  classification: { title: 'Classification', y: 'error / oracle’s', alike: 'rises' },
}

function simulate(rounds, seed) {
  const args = ['run', '--release', '--quiet', '-p', 'aquila', '--example', 'label_assignment', '--']
  const { status, stdout, stderr } = spawnSync('cargo', [...args, String(rounds), String(seed)], {
    cwd: root,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Refusal(stderr?.trim().split('\n').at(-1) ?? 'cargo could not be started')
  return JSON.parse(stdout)
}

/** What must come out: in groups of like samples sums are as good or better, in unlike ones assignment is. */
function check({ regression, classification }) {
  const gain = ({ noAs, as }) => noAs.mean / as.mean
  const [slight, wide] = [regression.find(({ spread }) => spread === 0.1), regression.at(-1)]
  if (!(gain(slight) < 1 && gain(wide) > 2 && wide.as.mean < 1.1))
    throw new Refusal('regression: not the shape of Figure 3')
  if (!(gain(classification[0]) > 1 && gain(classification[0]) > gain(classification.at(-1))))
    throw new Refusal('classification: not the shape of Figure 6')
}

const figure = ({ mean, sd }) => `${mean.toFixed(3)} ± ${sd.toFixed(3)}`

function markdown(results, picture) {
  const { sizes, rounds } = results
  const share = ({ mean }) => `${(100 * mean).toFixed(2)} %`
  const tables = Object.entries(TASKS).map(([task, { title, alike }]) => {
    const rows = results[task].map(({ spread, noAs, as, wrong }) => [
      `σ₂ = ${spread}`,
      figure(noAs),
      figure(as),
      ...(task === 'regression' ? [] : [wrong.noAs, wrong.as, wrong.oracle].map(share)),
    ])
    const more = task === 'regression' ? [] : ['wrong: NoAS', 'AS', 'oracle']
    return `## ${title}\n\nLikeness of a group's samples ${alike} with σ₂.\n\n${table(['', 'NoAS', 'AS', ...more], rows)}`
  })
  return `# What giving labels to samples is worth, ${results.date}

${inWords(results)}

The simulation of EAGLE's Theorem 1 (Figures 3 and 6 of the paper): ${sizes.samples} samples in groups of ${sizes.groupSize}, ${sizes.features} features, ${sizes.responses} responses.
Errors of estimators without and with label assignment, divided by those of one that knows the true pairs; mean and standard deviation of ${rounds} rounds. What is simulated: [label_assignment.rs](../../crates/aquila/examples/label_assignment.rs).

![Error by spread](${picture})

${tables.join('\n\n')}

Command: \`${results.command}\`
`
}

await command('simulation', async () => {
  const values = optionsOf({
    rounds: { type: 'string', default: '200' },
    seed: { type: 'string', default: '0' },
    out: { type: 'string', default: join(root, 'bench/results') },
  })
  if (!values) return say(USAGE)
  const [rounds, seed] = [count(values, 'rounds', 1), count(values, 'seed', 0)]
  const { runtime } = await built()
  const found = simulate(rounds, seed)
  check(found)
  const results = {
    ...circumstances(`node bench/simulation.mjs --rounds ${rounds} --seed ${seed}`, runtime),
    ...found,
  }
  const panels = Object.entries(TASKS).map(([task, { title, y }]) => ({
    name: title,
    x: { label: 'σ₂', kind: 'even' },
    y: { label: y },
    lines: Object.entries(NAMES).map(([key, name]) => ({
      name,
      points: found[task].map((at) => ({ x: at.spread, y: at[key].mean, sd: at[key].sd })),
    })),
  }))
  const base = join(resolve(values.out), `${results.date}-simulation`)
  await record(base, {
    svg: curves(panels, Object.values(NAMES), 'Error without and with label assignment by spread'),
    md: markdown(results, `${results.date}-simulation.svg`),
    json: `${JSON.stringify(results, null, 1)}\n`,
  })
  say(`${base}.{json,md,svg}`)
})
