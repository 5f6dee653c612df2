// What all pictures share: colours, marks, axes, and panels on one sheet. Plain SVG without fonts or scripts of its
// own; it follows the reader's light or dark scheme.

const WIDTH = 330
const HEIGHT = 250
const MARGIN = { left: 48, right: 16, top: 34, bottom: 44 }

/** Where a panel draws, its corner at 0, 0. */
export const FRAME = {
  x: MARGIN.left,
  y: MARGIN.top,
  w: WIDTH - MARGIN.left - MARGIN.right,
  h: HEIGHT - MARGIN.top - MARGIN.bottom,
}

/** About how wide a letter is. */
export const CHARACTER = 6.4

// Plain rules instead of CSS variables, which many viewers of SVG do not know.
const rules = ({ ground, ink, faint, grid, marks }, lines) =>
  [
    `.ground { fill: ${ground} }`,
    `text { fill: ${ink} }`,
    `.faint { fill: ${faint} }`,
    `.grid { stroke: ${grid} }`,
    `.frame { stroke: ${faint} }`,
    ...marks.map((colour, i) => `.s${i} { fill: ${colour} }`),
    ...(lines ? marks.map((colour, i) => `.l${i} { stroke: ${colour} }`) : []),
  ].join('\n')

const LIGHT = {
  ground: '#ffffff',
  ink: '#1f2328',
  faint: '#656d76',
  grid: '#e4e8ec',
  marks: ['#c2410c', '#1d4ed8', '#047857', '#4d7c0f', '#7e22ce', '#a21caf'],
}
const DARK = {
  ground: '#0d1117',
  ink: '#e6edf3',
  faint: '#9198a1',
  grid: '#262c36',
  marks: ['#fb923c', '#79a8ff', '#34d399', '#bef264', '#c4a1ff', '#f0abfc'],
}

const style = (lines) => `
text { font-family: 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; font-size: 11px }
.title { font-weight: 600; font-size: 13px }
.ours { font-weight: 600 }
.frame { fill: none }
${lines ? '.line { fill: none; stroke-width: 1.6 }\n' : ''}${rules(LIGHT, lines)}
@media (prefers-color-scheme: dark) {
${rules(DARK, lines)}
}`

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
export const escaped = (text) => String(text).replaceAll(/[&<>"]/g, (character) => ENTITIES[character])
export const round = (value) => Number(value.toFixed(1))

const PLUS = [-2, -7, 2, -7, 2, -2, 7, -2, 7, 2, 2, 2, 2, 7, -2, 7, -2, 2, -7, 2, -7, -2, -2, -2]

const SHAPES = [
  (x, y, css) => `<circle class="${css}" cx="${x}" cy="${y}" r="6"/>`,
  (x, y, css) => `<rect class="${css}" x="${round(x - 5)}" y="${round(y - 5)}" width="10" height="10"/>`,
  (x, y, css) => polygon(css, x, y, [0, -6.5, 6.5, 5.5, -6.5, 5.5]),
  (x, y, css) => polygon(css, x, y, [0, 6.5, 6.5, -5.5, -6.5, -5.5]),
  (x, y, css) => polygon(css, x, y, [0, -7, 7, 0, 0, 7, -7, 0]),
  (x, y, css) => polygon(css, x, y, PLUS),
]

function polygon(css, x, y, corners) {
  const points = corners.map((offset, i) => round(offset + (i % 2 === 0 ? x : y)))
  return `<polygon class="${css}" points="${points.join(' ')}"/>`
}

/** The number of a system's colour and shape. */
export const look = (number) => number % SHAPES.length

/** A mark by its number, all of about the same size: they tell systems apart without colour. */
export const mark = (number, x, y) => SHAPES[look(number)](x, y, `s${look(number)}`)

/** Round numbers of a logarithmic axis: each 1, 2 and 5 while they are few, else powers of ten. */
export function logTicks(low, high) {
  const pick = (leads) => {
    const ticks = []
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const lead of leads) ticks.push(Number(`${lead}e${power}`))
    return ticks.filter((tick) => tick >= low && tick <= high)
  }
  const fine = pick([1, 2, 5])
  return fine.length <= 6 ? fine : pick([1])
}

/** Round numbers of a plain axis, about `count` of them. */
export function ticks(low, high, count = 5) {
  const rough = (high - low) / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((lead) => lead * power).find((size) => size >= rough)
  const first = Math.ceil(low / step)
  const last = Math.floor(high / step)
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)))
}

/**
 * An axis from `low` to `high`: where a value stands as a share of the way, and its ticks.
 *
 * @returns {{ at: (value: number) => number, ticks: number[] }}
 */
export const plain = (low, high) => ({ at: (v) => (v - low) / (high - low), ticks: ticks(low, high) })
export const logarithmic = (low, high) => ({
  at: (v) => Math.log(v / low) / Math.log(high / low),
  ticks: logTicks(low, high),
})
/** An axis on which these values stand at equal distances, in their order. */
export const even = (values) => ({
  at: (v) => (values.indexOf(v) + 0.5) / values.length,
  ticks: values,
})

/**
 * The axes of a panel: ready parts, and the functions that place values.
 *
 * @param {string} title
 * @param {{ at, ticks, label: string }} x - An axis and what it shows.
 * @param {{ at, ticks, label: string }} y
 */
export function axes(title, x, y) {
  const across = (value) => round(FRAME.x + FRAME.w * x.at(value))
  const up = (value) => round(FRAME.y + FRAME.h * (1 - y.at(value)))
  const [end, floor] = [FRAME.x + FRAME.w, FRAME.y + FRAME.h]
  const words = (at, height, anchor, text, css = 'faint') =>
    `<text class="${css}" x="${at}" y="${height}"${anchor && ` text-anchor="${anchor}"`}>${escaped(text)}</text>`
  const rule = (x1, y1, x2, y2) => `<line class="grid" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`
  const parts = [words(FRAME.x, 20, '', title, 'title')]
  for (const tick of x.ticks) {
    const at = across(tick)
    parts.push(rule(at, FRAME.y, at, floor), words(at, floor + 15, 'middle', tick))
  }
  for (const tick of y.ticks) {
    const at = up(tick)
    parts.push(rule(FRAME.x, at, end, at), words(FRAME.x - 6, round(at + 4), 'end', tick))
  }
  parts.push(
    `<rect class="frame" x="${FRAME.x}" y="${FRAME.y}" width="${FRAME.w}" height="${FRAME.h}"/>`,
    words(round(FRAME.x + FRAME.w / 2), floor + 32, 'middle', x.label),
    words(end, 20, 'end', y.label),
  )
  return { parts, across, up }
}

/** Panels side by side, up to three in a row, over a legend of `[name, number]` where there is one. */
export function sheet(panels, { title, legend = [], lines = false }) {
  const columns = Math.max(1, Math.min(3, panels.length))
  const rows = Math.max(1, Math.ceil(panels.length / columns))
  const [width, height] = [columns * WIDTH, rows * HEIGHT + (legend.length > 0 ? 24 : 0)]
  const groups = panels.map((one, i) => {
    const [x, y] = [(i % columns) * WIDTH, Math.floor(i / columns) * HEIGHT]
    return `<g transform="translate(${x} ${y})">\n${one}\n</g>`
  })
  let x = FRAME.x
  for (const [name, number] of legend) {
    const y = height - 14
    groups.push(mark(number, x, y), `<text x="${x + 11}" y="${y + 4}">${escaped(name)}</text>`)
    x += 32 + Math.ceil(name.length * CHARACTER)
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">
<style>${style(lines)}
</style>
<rect class="ground" width="${width}" height="${height}"/>
${groups.join('\n')}
</svg>
`
}
