// Results as text for people.

import { geometricMean, MEASURES, tolerance } from './compare.mjs'
import { table } from './record.mjs'
import { OURS, OWN } from './systems.mjs'

const NONE = '–'
const REFUSED = 'worse answers: no ratio'

/** A number with three digits that count. */
export function digits(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE
  if (value === 0) return '0'
  const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  return value.toFixed(Math.min(places, 6))
}

const percent = (value) => value.toFixed(2)
const whole = (value) => value.toLocaleString('en')
const scaled = (value, factor) => (value === null ? NONE : digits(value * factor))

/** How many times better, or why there is no such number. */
export function times(ratio) {
  if (ratio === null || ratio === undefined) return NONE
  return `${ratio >= 100 ? ratio.toFixed(0) : ratio.toFixed(ratio >= 10 ? 1 : 2)}×`
}

const COLUMNS = [
  ['P@1', (best) => percent(best.precision[1])],
  ['P@3', (best) => percent(best.precision[3])],
  ['P@5', (best) => percent(best.precision[5])],
  ['nDCG@5', (best) => percent(best.ndcg[5])],
  ['training, s', (best) => digits(best.trainSeconds)],
  ['batch, ms/row', (best) => digits(best.batchMsPerRow)],
  ['batch, AVX2', (best) => digits(best.batchMsPerRowAvx2)],
  ['batch, portable', (best) => digits(best.batchMsPerRowScalar)],
  ['single query, µs', (best) => scaled(best.singleMedianMs, 1000)],
  ['single, AVX2', (best) => scaled(best.singleMedianMsAvx2 ?? null, 1000)],
  ['single, portable', (best) => scaled(best.singleMedianMsScalar ?? null, 1000)],
  ['p99, µs', (best) => scaled(best.singleP99Ms, 1000)],
  ['model, MB', (best) => scaled(best.modelBytes, 1e-6)],
  ['peak memory, MB', (best) => scaled(best.trainPeakBytes, 1e-6)],
]

const failed = ({ status, reason }) => `${status}${reason ? `: ${reason.replaceAll('|', '\\|')}` : ''}`

/** Every figure of one set. */
function figures(set) {
  const rows = set.systems.map((system) =>
    system.best
      ? [
          system.name in OWN ? `**${system.name}**` : system.name,
          ...COLUMNS.map(([, cell]) => cell(system.best)),
        ]
      : [`${system.name} (${failed(system)})`, ...COLUMNS.map(() => NONE)],
  )
  return table(['', ...COLUMNS.map(([head]) => head)], rows)
}

const RATIOS = [
  'trainSeconds',
  'batchMsPerRow',
  'batchMsPerRowAvx2',
  'batchMsPerRowScalar',
  'singleMedianMs',
  'singleMedianMsAvx2',
  'singleMedianMsScalar',
  'modelBytes',
  'trainPeakBytes',
]

function ratioCells({ worse, ratios }) {
  if (ratios) return RATIOS.map((name) => times(ratios[name]))
  const where = worse.map(({ k, points }) => `P@${k} −${points.toFixed(2)}`).join(', ')
  return [`${REFUSED} (${where})`, ...RATIOS.slice(1).map(() => NONE)]
}

/** The sets that each peer was measured on, with how ours stands there. */
function verdicts(sets) {
  const measured = sets.flatMap((set) =>
    set.systems.filter((system) => system.against).map(({ name }) => name),
  )
  return [...new Set(measured)].map((peer) => [
    peer,
    sets.flatMap((set) =>
      set.systems
        .filter(({ name, against }) => name === peer && against)
        .map((system) => [set, system.against]),
    ),
  ])
}

/** Geometric means of these ratios. */
const meansOf = (kept, names) =>
  names.map((name) =>
    geometricMean(kept.map(([, verdict]) => verdict.ratios[name]).filter((ratio) => ratio !== null)),
  )

const countOf = (kept, sets) => (kept.length === sets.length ? 'all' : `${kept.length} of ${sets.length}`)

/** Ours against each peer: a row for each set, and their geometric mean. */
function ratios(sets) {
  const rows = []
  for (const [peer, against] of verdicts(sets)) {
    const standIn = ({ by }) => (by === OURS ? '' : ` (${by})`)
    for (const [set, verdict] of against)
      rows.push([`${peer}, ${set.name}${standIn(verdict)}`, ...ratioCells(verdict)])
    const kept = against.filter(([, verdict]) => verdict.ratios)
    if (against.length < 2 || kept.length === 0) continue
    const means = meansOf(kept, RATIOS).map(times)
    rows.push([`**${peer}, geometric mean of ${countOf(kept, sets)} sets**`, ...means])
  }
  if (rows.length === 0) return 'No peer was measured.'
  return table(['Peer, set', ...RATIOS.map((name) => MEASURES[name])], rows)
}

const about = (set) =>
  `${whole(set.rows)} rows, ${whole(set.testRows)} test rows, ${whole(set.features)} features, ${whole(set.labels)} labels`

function circumstances({ date, machine, commit, versions, options }) {
  const gigabytes = (machine.memoryBytes / 2 ** 30).toFixed(0)
  const { aquila, simd, node, rust, python, ...others } = versions
  const peers = ['pecos', 'omikuji', 'napkinxc']
    .filter((name) => others[name])
    .map((name) => `${name} ${others[name]}`)
  const what = [`${OURS} ${aquila} (${simd})`, `Node ${node}`, rust?.replace(/ \(.*/, ''), ...peers]
  if (python) what.push(`Python ${python}`)
  const tree = commit.dirty === false ? '' : ' with uncommitted changes'
  const lines = [
    `Measured on ${date} at commit ${commit.hash.slice(0, 10)}${tree}; ${machine.cpu}, ${machine.cores} cores, ${gigabytes} GB, ${machine.system}.`,
    `${what.filter(Boolean).join(', ')}. ${options.threads} threads, k = ${options.k}, beam ${options.beam}, rows of length 1; the systems took turns, ${options.rounds} each, and the best counts.`,
  ]
  if (machine.busiest > 0.1)
    lines.push(
      `**The machine had other work: up to ${(100 * machine.busiest).toFixed(0)} % of its processors. Times mean little.**`,
    )
  return lines.join('\n')
}

const RULE =
  'A ratio says how many times faster or smaller ours is, with all instructions of the processor, or as it is without ' +
  'AVX-512 and with the portable kernels alone; the peer has all of its own in every column. Where our P@1, P@3 or P@5 is lower than the ' +
  `peer's by more than ${tolerance(5000)} points (${tolerance(0)} with fewer than 5,000 test rows), \`aquila-2\`, with ` +
  'two leaves a label, stands in for our defaults, and where its own is lower too, there is no ratio.'

const SUMMED = [
  'trainSeconds',
  'batchMsPerRow',
  'batchMsPerRowAvx2',
  'singleMedianMs',
  'singleMedianMsAvx2',
  'modelBytes',
  'trainPeakBytes',
]

/** A section for the README: geometric means alone. `picture` is a path or nothing. */
export function summary(results, picture) {
  const { sets } = results
  const rows = verdicts(sets).map(([peer, against]) => {
    const kept = against.filter(([, verdict]) => verdict.ratios)
    return [`${peer}, ${countOf(kept, sets)}`, ...meansOf(kept, SUMMED).map(times)]
  })
  const means =
    rows.length === 0
      ? 'No peer was measured.'
      : `How many times faster or smaller ours is, as a geometric mean over ${sets.map(({ name }) => name).join(', ')}. A set counts where our answers are as good as the peer's, if need be with two leaves a label.\n\n${table(['Peer, sets', ...SUMMED.map((name) => MEASURES[name])], rows)}`
  return [
    means,
    ...(picture ? [`![Training time against P@1](${picture})`] : []),
    circumstances(results),
  ].join('\n\n')
}

/** A section for the page of the results: ratios first, then each set's figures. `picture` is a path or nothing. */
export function section(results, picture) {
  const parts = [circumstances(results)]
  if (picture) parts.push(`![Training time against P@1](${picture})`)
  parts.push(`${RULE}\n\n${ratios(results.sets)}`)
  for (const set of results.sets) parts.push(`**${set.name}**: ${about(set)}\n\n${figures(set)}`)
  return parts.join('\n\n')
}

/** The table that stands beside the results. */
export function markdown(results, picture) {
  const notes = [...results.own, ...results.peers].map(({ name, note }) => `- ${name}: ${note}`)
  const legend = `\n\n## Systems\n\n${notes.join('\n')}`
  return `# ${OURS} against its peers, ${results.date}\n\n${section(results, picture)}${legend}\n\nCommand: \`${results.command}\`\n`
}

export const BEGIN = '<!-- bench:begin -->'
export const END = '<!-- bench:end -->'

/** The text with what stands between the two markers replaced. */
export function fill(text, content) {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`Expected the markers ${BEGIN} and ${END}, in this order`)
  if (text.indexOf(BEGIN, begin + 1) >= 0 || text.indexOf(END, end + 1) >= 0)
    throw new Error(`Expected the markers ${BEGIN} and ${END} only once`)
  return `${text.slice(0, begin + BEGIN.length)}\n${content.trim()}\n${text.slice(end)}`
}
