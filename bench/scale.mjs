// How the assignment of group labels grows: time and memory by samples and size of groups, up to a million samples and
// a hundred thousand labels, all generated.
//
//   node bench/scale.mjs [--samples 125000,…,1000000] [--sizes 5,10,20] [--labels 100000] [--threads 2]
//
// Each figure is of the command line's own process, from matrices in memory to the result in memory; peak memory is
// that of the whole process. Sizes whose product with the samples is above ten million are left out.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../scripts/lib/run.mjs'
import { built } from './lib/built.mjs'
import { command, count, optionsOf, Refusal, say } from './lib/command.mjs'
import { curves } from './lib/curves.mjs'
import { circumstances, inWords, record, table } from './lib/record.mjs'
import { aquila, call } from './lib/systems.mjs'

const USAGE =
  'node bench/scale.mjs [--samples 125000,250000,500000,1000000] [--sizes 5,10,20] [--labels 100000] [--iterations 20] [--threads 2] [--out bench/results]'
/** Most memberships times one, so that the largest point is that of groups of ten. */
const MOST = 10_000_000
const crowd = fileURLToPath(new URL('./lib/crowd.mjs', import.meta.url))

const numbers = (values, name) =>
  values[name]
    .split(',')
    .map((value) => count({ [name]: value }, name, 1))
    .sort((a, b) => a - b)

/** One point: so many samples in groups of this size. */
async function measure(folder, size, { labels, iterations, threads }) {
  const [x, y, groups, bags, out] = ['X', 'Y', 'G', 'B', 'S'].map((name) => join(folder, `${name}.npz`))
  const made = ['--rule', `random:${size}`, '--out', groups, '--y', y, '--bags', bags, '--merge', 'set']
  await aquila(['group', '--x', x, ...made], 0)
  const given = ['--x', x, '--groups', groups, '--bags', bags, '--out', out]
  const done = await aquila(['assign', ...given, '--iterations', iterations, '--threads', threads], 0)
  return {
    samples: done.rows,
    size,
    labels,
    assigned: done.assigned,
    seconds: done.seconds.total,
    peakMemoryBytes: done.peakMemoryBytes,
  }
}

const thousands = (value) => value.toLocaleString('en')

function markdown(results, picture) {
  const rows = results.points.map(({ samples, size, assigned, seconds, peakMemoryBytes }) => [
    `${thousands(samples)} samples in groups of ${size}`,
    thousands(assigned),
    seconds.toFixed(2),
    ((1e9 * seconds) / (samples * size)).toFixed(0),
    (peakMemoryBytes / 2 ** 30).toFixed(2),
  ])
  const head = ['', 'assigned labels', 'seconds', 'ns for each sample × size', 'peak, GiB']
  return `# Assignment at scale, ${results.date}

${inWords(results)}

Generated samples of about 40 features and three labels each, ${thousands(results.options.labels)} labels in all; ${results.options.iterations} rounds, ${results.options.threads} threads.

![Seconds by samples times size of groups](${picture})

The broken line is proportional to samples × size, through the largest point of groups of the middle size.

${table(head, rows)}

Command: \`${results.command}\`
`
}

/** The picture: a line for each size of groups, and the proportion. */
function picture(points) {
  const sizes = [...new Set(points.map(({ size }) => size))]
  const product = ({ samples, size }) => samples * size
  const lines = sizes.map((size) => ({
    name: `groups of ${size}`,
    points: points.filter((p) => p.size === size).map((p) => ({ x: product(p), y: p.seconds })),
  }))
  const last = points.filter(({ size }) => size === sizes[sizes.length >> 1]).at(-1)
  const all = points.map(product)
  const proportion = [Math.min(...all), Math.max(...all)].map((x) => ({
    x,
    y: (last.seconds * x) / product(last),
  }))
  const panel = {
    name: 'Assignment',
    x: { label: 'samples × size of groups', kind: 'log' },
    y: { label: 'seconds', kind: 'log' },
    lines: [{ name: 'proportional', sign: false, points: proportion }, ...lines],
  }
  return curves(
    [panel],
    lines.map(({ name }) => name),
    'Seconds of an assignment by samples times size of groups',
  )
}

await command('scale', async () => {
  const values = optionsOf({
    samples: { type: 'string', default: '125000,250000,500000,1000000' },
    sizes: { type: 'string', default: '5,10,20' },
    labels: { type: 'string', default: '100000' },
    iterations: { type: 'string', default: '20' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: join(root, 'bench/results') },
  })
  if (!values) return say(USAGE)
  const options = {
    samples: numbers(values, 'samples'),
    sizes: numbers(values, 'sizes'),
    labels: count(values, 'labels', 1),
    iterations: count(values, 'iterations', 0),
    threads: count(values, 'threads', 1),
  }
  const { runtime } = await built()
  const told = `node bench/scale.mjs --samples ${options.samples} --sizes ${options.sizes} --labels ${options.labels} --iterations ${options.iterations} --threads ${options.threads}`
  const results = { ...circumstances(told, runtime), options, points: [] }
  const folder = await mkdtemp(join(tmpdir(), 'aquila-scale-'))
  try {
    for (const samples of options.samples) {
      await call(process.execPath, [crowd, folder, String(samples), String(options.labels)])
      for (const size of options.sizes.filter((size) => samples * size <= MOST)) {
        const point = await measure(folder, size, options)
        results.points.push(point)
        say(
          `${samples} samples in groups of ${size}: ${point.seconds.toFixed(2)} s, ${(point.peakMemoryBytes / 2 ** 30).toFixed(2)} GiB`,
        )
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  if (results.points.length === 0) throw new Refusal(`Expected samples × sizes of at most ${MOST}`)
  const base = join(resolve(values.out), `${results.date}-scale`)
  await record(base, {
    svg: picture(results.points),
    md: markdown(results, `${results.date}-scale.svg`),
    json: `${JSON.stringify(results, null, 1)}\n`,
  })
  say(`${base}.{json,md,svg}`)
})
