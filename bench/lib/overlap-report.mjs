// Results on labels under several leaves, as tables and pictures like those of the paper on label disentanglement.

import { curves } from './curves.mjs'
import { MODES } from './fused.mjs'
import { inWords, summary, table } from './record.mjs'
import { RANKS } from './score.mjs'

const FIVE = RANKS.indexOf(5)

/** The variants of runs in the order in which they were made, with the runs of each. */
function variantsOf(runs) {
  const variants = new Map()
  for (const run of runs) variants.set(run.variant, [...(variants.get(run.variant) ?? []), run])
  return variants
}

/** Mean and deviation over seeds of what a run has beyond the one of the same seed without overlap. */
function beyond(runs, plain, of) {
  const pairs = runs.map((run) => [run, plain.find(({ seed }) => seed === run.seed)])
  return summary(pairs.filter(([, base]) => base).map(([run, base]) => of(run, base)))
}

const gain = (rank) => (run, base) => run.precision[rank] - base.precision[rank]
const signed = (value, digits = 2) =>
  `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits).replace('-', '')}`
const points = ({ mean, sd }, runs) => signed(mean) + (runs.length > 1 ? ` ± ${sd.toFixed(2)}` : '')
const mean = (runs, name) => summary(runs.map((run) => run[name])).mean

/** The columns of the paper's Tables 4 and 5: precision with and without the update, and what it costs beyond 1. */
function copiesTable(runs) {
  const variants = variantsOf(runs)
  const plain = variants.get('1') ?? []
  const rows = [...variants].map(([name, own]) => [
    name,
    ...RANKS.map((_, rank) => summary(own.map((run) => run.precision[rank])).mean.toFixed(2)),
    ...RANKS.map((_, rank) => (own === plain ? '' : points(beyond(own, plain, gain(rank)), own))),
    mean(own, 'slots').toFixed(0),
    mean(own, 'largestLeaf').toFixed(0),
    ...['seconds', 'msPerRow', 'bytes'].map((cost) =>
      own === plain ? '' : `${signed(mean(own, cost) / mean(plain, cost) - 1)}×`,
    ),
  ])
  const ranks = RANKS.map((k) => `P@${k}`)
  const head = [
    'leaves a label',
    ...ranks,
    ...ranks.map((name) => `gain ${name}`),
    'slots',
    'largest leaf',
    'extra training',
    'extra prediction',
    'extra model',
  ]
  const base = plain.length
    ? `Without overlap: training ${mean(plain, 'seconds').toFixed(2)} s, prediction ${(1000 * mean(plain, 'msPerRow')).toFixed(1)} µs a row, model ${(mean(plain, 'bytes') / 1e6).toFixed(1)} MB.\n\n`
    : ''
  return base + table(head, rows)
}

/** The runs of a mode and size. */
const fusedRuns = (runs, mode, k) => runs.filter((run) => run.mode === mode && run.k === k)

/** The relative gain of P@5, in per cent, as the paper's Figure 2 has it. */
const relative = (runs) =>
  summary(runs.map((run) => 100 * (run.with.precision[FIVE] / run.without.precision[FIVE] - 1)))

function fusedTable(runs) {
  const rows = MODES.flatMap((mode) =>
    [...new Set(runs.filter((run) => run.mode === mode).map((run) => run.k))].map((k) => {
      const own = fusedRuns(runs, mode, k)
      const p5 = (side) => summary(own.map((run) => run[side].precision[FIVE])).mean
      const gains = RANKS.map((_, rank) =>
        points(summary(own.map((run) => gain(rank)(run.with, run.without))), own),
      )
      return [
        `${mode}, ${k}`,
        String(own[0].labels),
        p5('without').toFixed(2),
        p5('with').toFixed(2),
        ...gains,
        `${signed(relative(own).mean)} %`,
      ]
    }),
  )
  const head = [
    'fused',
    'labels',
    'P@5 without',
    'P@5 with',
    ...RANKS.map((k) => `gain P@${k}`),
    'relative, P@5',
  ]
  return table(head, rows)
}

function homonymsTable({ homonyms, runs }) {
  const rows = [...variantsOf(runs)].map(([name, own]) => [
    name,
    ...RANKS.map((_, rank) => summary(own.map((run) => run.precision[rank])).mean.toFixed(2)),
    `${mean(own, 'separated').toFixed(0)} of ${homonyms}`,
    mean(own, 'variation').toFixed(3),
    mean(own, 'slots').toFixed(0),
    mean(own, 'seconds').toFixed(2),
    (1000 * mean(own, 'msPerRow')).toFixed(1),
  ])
  const head = [
    'leaves a label',
    ...RANKS.map((k) => `P@${k}`),
    'separated',
    'VI, bits',
    'slots',
    'training, s',
    'µs a row',
  ]
  return table(head, rows)
}

/** P@5 by the number of leaves a label, beyond one leaf; and with as many dealt at random. */
function copiesPanel({ name, copies: runs }) {
  const variants = variantsOf(runs)
  const plain = variants.get('1') ?? []
  const at = (variant, x) => {
    const own = variants.get(variant)
    if (!own) return []
    const { mean, sd } = beyond(own, plain, gain(FIVE))
    return [{ x, y: mean, sd: own === plain ? 0 : sd }]
  }
  const numbers = [...variants.keys()].filter((variant) => /^\d+$/.test(variant)).map(Number)
  return {
    name,
    x: { label: 'leaves a label, at most' },
    y: { label: 'gain of P@5, points' },
    lines: [
      { name: 'overlap', points: numbers.flatMap((n) => at(String(n), n)) },
      { name: 'without the update', points: at('2, no update', 2) },
      { name: 'dealt at random', points: at('2, at random', 2) },
    ],
  }
}

function fusedPanel({ name, fused: runs }) {
  const sizes = [...new Set(runs.map((run) => run.k))]
  const lines = MODES.map((mode) => ({
    name: mode,
    points: sizes.flatMap((k) => {
      const own = fusedRuns(runs, mode, k)
      if (own.length === 0) return []
      const { mean, sd } = relative(own)
      return [{ x: k, y: mean, sd }]
    }),
  }))
  return { name, x: { label: 'labels that became one', kind: 'even' }, y: { label: 'gain of P@5, %' }, lines }
}

/** The pictures by what their names add to the results': the paper's Figures 3 and 2. */
export function pictures({ sets }) {
  const wanted = {
    '': [
      sets.map(copiesPanel),
      ['overlap', 'without the update', 'dealt at random'],
      'Precision by leaves a label',
    ],
    '-fused': [sets.map(fusedPanel), [...MODES].reverse(), 'Precision on fused labels'],
  }
  const drawn = Object.entries(wanted).filter(([, [panels]]) =>
    panels.some(({ lines }) => lines.some(({ points }) => points.length > 0)),
  )
  return Object.fromEntries(
    drawn.map(([part, [panels, order, title]]) => [part, curves(panels, order, title)]),
  )
}

/** The results for people; `base` is the name of the pictures' files, `parts` what is added to it. */
export function markdown(results, base, parts) {
  const { sets, homonyms, options, date, command } = results
  const captions = {
    '': "P@5 gained by the number of leaves a label, against one leaf of the same seed (the paper's Figure 3)",
    '-fused': 'P@5 gained where labels were put together from several (Figure 2)',
  }
  const real = sets.map(({ name, rows, testRows, features, labels, copies, fused }) =>
    [
      `## ${name}`,
      `${rows} rows, ${testRows} test rows, ${features} features, ${labels} labels.`,
      ...(copies.length > 0 ? [copiesTable(copies)] : []),
      ...(fused.length > 0 ? [fusedTable(fused)] : []),
    ].join('\n\n'),
  )
  const made = homonyms.map((set) =>
    [
      `## Homonyms of ${set.meanings} meanings`,
      `${set.labels} labels, ${set.homonyms} of which stand for something in each of ${set.meanings} of ${set.topics} topics. A homonym is separated if it has a leaf of each of its topics. VI: the variation of information between the topics of a homonym's test rows and the leaves in which it scores best; 0 would be one leaf for each meaning and no other.`,
      homonymsTable(set),
    ].join('\n\n'),
  )
  return `${[
    `# Labels under several leaves, ${date}`,
    inWords(results),
    `Threads: ${options.threads}; seeds: ${options.seeds}, of fused labels: ${options.fusedSeeds}. Gains are in percentage points against the same seed without overlap, mean ± standard deviation. Beam 10; the time of a prediction is the best of three. Sets of fewer than 2,000 labels have leaves of 16 at most and \`overlap.leafCap\` 4, others the defaults; \`overlap.leafCap\` is at least the number of leaves a label. The most frequent labels have slots under the root as well, except for "2, none at the root", "2, no update" and "2, at random", which has as many further slots as "2, none at the root", dealt at random. "paper" is the paper's own form, its most counted leaves without a bound (\`overlap.leafCap\` 0) and the mean over leaves reached; there one leaf moves labels, too.`,
    ...parts.map((part) => `![${captions[part]}](${base}${part}.svg)`),
    ...real,
    ...made,
    `Command: \`${command}\``,
  ].join('\n\n')}\n`
}
