// Results on labels of groups, as tables and pictures like those of the EAGLE paper.

import { curves } from './curves.mjs'
import { depthOf, ruleOf } from './grouping.mjs'
import { inWords, summary, table } from './record.mjs'
import { RANKS } from './score.mjs'

const NAMES = { union: 'union', 'eagle-0': 'EAGLE-0', eagle: 'EAGLE', refine: 'refined' }
/** Ours first: it has the first colour. */
const ORDER = ['refined', 'EAGLE', 'EAGLE-0', 'union']
const MEASURES = { precision: 'P', ndcg: 'nDCG', psp: 'PSP' }

/** The runs of a rule and method. */
const runsOf = (set, rule, method) => set.runs.filter((run) => run.rule === rule && run.method === method)
const rulesOf = (set) => [...new Set(set.runs.map((run) => run.rule))].filter((rule) => rule !== 'none')

/** Mean and deviation over seeds of a measure at a rank (by its place in RANKS). */
const over = (runs, measure, rank) => summary(runs.map((run) => run[measure][rank]))

/** Three ranks of a measure in one cell. */
function cell(runs, measure) {
  if (runs.length === 0) return '–'
  const parts = RANKS.map((_, rank) => over(runs, measure, rank))
  return parts
    .map(({ mean, sd }) => mean.toFixed(1) + (runs.length > 1 ? ` ± ${sd.toFixed(1)}` : ''))
    .join(' / ')
}

function tableOf(set, measure) {
  const rows = rulesOf(set).map((rule) => [
    rule,
    ...Object.keys(NAMES).map((method) => cell(runsOf(set, rule, method), measure)),
  ])
  const name = MEASURES[measure]
  const truth = cell(runsOf(set, 'none', 'oracle'), measure)
  const head = `${name}@${RANKS.join(' / ')}`
  return `**${head}**; with the samples' own labels ${truth}\n\n${table(['groups', ...Object.values(NAMES)], rows)}`
}

/** What the groups of each rule are like, and how long the methods took. */
function aboutOf(set) {
  const rows = rulesOf(set).map((rule) => {
    const runs = set.runs.filter((run) => run.rule === rule)
    const mean = (name, digits) => summary(runs.map((run) => run[name])).mean.toFixed(digits)
    const seconds = Object.keys(NAMES).map((method) => {
      const own = runsOf(set, rule, method)
      return own.length > 0 ? summary(own.map((run) => run.seconds)).mean.toFixed(2) : '–'
    })
    return [
      rule,
      mean('groups', 0),
      mean('size', 1),
      mean('labelsOfGroup', 1),
      mean('likeness', 3),
      ...seconds,
    ]
  })
  const head = ['groups', 'number', 'samples', 'labels', 'likeness']
  return table([...head, ...Object.values(NAMES).map((name) => `${name}, s`)], rows)
}

/** How much of what true labels give is lost, in per cent of it, at a rank. */
function loss(set, runs, rank) {
  const truth = over(runsOf(set, 'none', 'oracle'), 'precision', rank).mean
  const { mean, sd } = over(runs, 'precision', rank)
  return { y: 100 * (1 - mean / truth), sd: (100 * sd) / truth }
}

/** What the paper varies: the rules of each, where a rule stands, and the words for it. */
const FAMILIES = {
  random: {
    label: 'samples of a random group',
    rule: ({ kind }) => kind === 'random',
    at: ({ size }) => size,
  },
  kmeans: {
    label: 'depth of clusters',
    rule: ({ kind, noise }) => kind === 'kmeans' && noise === 0,
    at: ({ size }, rows) => depthOf(rows, size),
  },
  noise: {
    label: 'share of samples that change places',
    rule: ({ kind, size }) => kind === 'kmeans' && size === 8,
    at: ({ noise }) => noise,
  },
}

/** The panel of a set, a family and a rank; without lines where fewer than two rules were measured. */
function panel(set, family, rank) {
  const { label, rule: belongs, at } = FAMILIES[family]
  const rules = rulesOf(set).filter((rule) => belongs(ruleOf(rule)))
  const lines = Object.entries(NAMES).map(([method, name]) => {
    const points = rules.flatMap((rule) => {
      const runs = runsOf(set, rule, method)
      return runs.length > 0 ? [{ x: at(ruleOf(rule), set.rows), ...loss(set, runs, rank) }] : []
    })
    return { name, points: points.length > 1 ? points.sort((a, b) => a.x - b.x) : [] }
  })
  return { name: set.name, x: { label }, y: { label: `loss of P@${RANKS[rank]}, %` }, lines }
}

/**
 * The pictures by what their names add to the results': the paper's Figure 4, a row a set, and Figures 7 to 9, with
 * all ranks.
 */
export function pictures({ sets }) {
  const families = Object.keys(FAMILIES)
  const wanted = {
    '': sets.flatMap((set) => families.map((family) => panel(set, family, 0))),
    ...Object.fromEntries(
      families.map((family) => [
        `-${family}`,
        sets.flatMap((set) => RANKS.map((_, rank) => panel(set, family, rank))),
      ]),
    ),
  }
  const drawn = Object.entries(wanted).filter(([, panels]) =>
    panels.some(({ lines }) => lines.some(({ points }) => points.length > 0)),
  )
  return Object.fromEntries(
    drawn.map(([part, panels]) => [part, curves(panels, ORDER, 'Loss of precision by kind of groups')]),
  )
}

/** The results for people; `base` is the name of the pictures' files, `parts` what is added to it. */
export function markdown(results, base, parts) {
  const { sets, options, date, command } = results
  const captions = {
    '': "P@1 lost against the samples' own labels (as the paper's Figure 4)",
    '-random': 'by size of random groups (Figure 7)',
    '-kmeans': 'by depth of clusters (Figure 8)',
    '-noise': 'by how many samples of clusters of 8 change places (Figure 9)',
  }
  const [first, ...others] = parts.map((part) => [captions[part], `${base}${part}.svg`])
  const drawn = first ? [`![${first[0]}](${first[1]})`] : []
  if (others.length > 0)
    drawn.push(`All ranks: ${others.map(([caption, path]) => `[${caption}](${path})`).join(', ')}.`)
  const told = sets.map((set) =>
    [
      `## ${set.name}`,
      `${set.rows} samples, ${set.testRows} test rows, ${set.features} features, ${set.labels} labels.`,
      aboutOf(set),
      ...Object.keys(MEASURES).map((measure) => tableOf(set, measure)),
    ].join('\n\n'),
  )
  const seeds = new Set(sets.flatMap((set) => set.runs.map((run) => run.seed))).size
  return `${[
    `# Labels of groups, ${date}`,
    inWords(results),
    `${options.threads} threads; ${seeds} seeds, each for groups and trainings, with their mean ± standard deviation; bags are ${options.merge === 'set' ? 'sets of labels' : 'labels with their counts'}. All measures in per cent; every model has the default parameters. Seconds are of labels and training together.`,
    ...drawn,
    ...told,
    `Command: \`${command}\``,
  ].join('\n\n')}\n`
}
