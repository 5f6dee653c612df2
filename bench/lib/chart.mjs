// A picture of time against quality: a panel for each set, a mark for each system. Plain SVG without fonts or
// scripts of its own; it follows the reader's light or dark scheme.

const WIDTH = 330
const HEIGHT = 250
const MARGIN = { left: 48, right: 16, top: 34, bottom: 44 }
const CHARACTER = 6.4

// Plain rules instead of CSS variables, which many viewers of SVG do not know.
const rules = ({ ground, ink, faint, grid, marks }) =>
  [
    `.ground { fill: ${ground} }`,
    `text { fill: ${ink} }`,
    `.faint { fill: ${faint} }`,
    `.grid { stroke: ${grid} }`,
    `.frame { stroke: ${faint} }`,
    ...marks.map((colour, i) => `.s${i} { fill: ${colour} }`),
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

const STYLE = `
text { font-family: 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; font-size: 11px }
.title { font-weight: 600; font-size: 13px }
.ours { font-weight: 600 }
.frame { fill: none }
${rules(LIGHT)}
@media (prefers-color-scheme: dark) {
${rules(DARK)}
}`

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text) => String(text).replaceAll(/[&<>"]/g, (character) => ENTITIES[character])
const round = (value) => Number(value.toFixed(1))

const PLUS = [-2, -7, 2, -7, 2, -2, 7, -2, 7, 2, 2, 2, 2, 7, -2, 7, -2, 2, -7, 2, -7, -2, -2, -2]

/** Marks by number, of about the same size: they tell systems apart without colour. */
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

const overlap = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h

/** How far a point is from a box. */
function distance(box, { x, y }) {
  const across = Math.max(box.x - x, 0, x - box.x - box.w)
  const along = Math.max(box.y - y, 0, y - box.y - box.h)
  return Math.hypot(across, along)
}

/**
 * A place for a mark's name: near it, free of other marks and names, and not nearer to another mark, where there is
 * such a place.
 */
function placeName(name, mark, marks, taken, frame) {
  const w = name.length * CHARACTER
  const h = 13
  const { x, y } = mark
  const boxes = []
  for (const lift of [0, -8, 8, -16, 16, -24, 24, -32, 32]) {
    boxes.push({ x: x + 10, y: y - h / 2 + lift, w, h }, { x: x - 10 - w, y: y - h / 2 + lift, w, h })
    if (Math.abs(lift) >= 16) {
      boxes.push({ x: x - w / 2, y: y - h / 2 + lift, w, h }, { x: x - 8, y: y - h / 2 + lift, w, h })
      boxes.push({ x: x + 8 - w, y: y - h / 2 + lift, w, h })
    }
  }
  const others = marks.filter((other) => other !== mark)
  const cost = (box) => {
    const near = distance(box, mark)
    const covered = taken.filter((other) => overlap(box, other)).length
    const outside =
      box.x < frame.x || box.x + w > frame.x + frame.w || box.y < frame.y || box.y + h > frame.y + frame.h
    const mistaken = others.filter((other) => distance(box, other) < near + 4).length
    return near + 60 * covered + 30 * mistaken + (outside ? 500 : 0)
  }
  const costs = boxes.map(cost)
  return boxes[costs.indexOf(Math.min(...costs))]
}

/** One panel, its corner at 0, 0. */
function panel({ name, points }, order) {
  const frame = {
    x: MARGIN.left,
    y: MARGIN.top,
    w: WIDTH - MARGIN.left - MARGIN.right,
    h: HEIGHT - MARGIN.top - MARGIN.bottom,
  }
  const seconds = points.map((point) => point.seconds)
  const quality = points.map((point) => point.quality)
  // A little air around the marks; differences of a fraction of a point must not look large.
  const [left, right] = [Math.min(...seconds) / 1.6, Math.max(...seconds) * 1.6]
  const middle = (Math.min(...quality) + Math.max(...quality)) / 2
  const reach = Math.max(1, 0.65 * (Math.max(...quality) - Math.min(...quality)))
  const [low, high] = [middle - reach, middle + reach]
  const across = (s) => round(frame.x + (frame.w * Math.log(s / left)) / Math.log(right / left))
  const up = (q) => round(frame.y + (frame.h * (high - q)) / (high - low))

  const [end, floor] = [frame.x + frame.w, frame.y + frame.h]
  const parts = [`<text class="title" x="${frame.x}" y="20">${escaped(name)}</text>`]
  for (const tick of logTicks(left, right)) {
    const x = across(tick)
    parts.push(`<line class="grid" x1="${x}" y1="${frame.y}" x2="${x}" y2="${floor}"/>`)
    parts.push(`<text class="faint" x="${x}" y="${floor + 15}" text-anchor="middle">${tick}</text>`)
  }
  for (const tick of ticks(low, high)) {
    const y = up(tick)
    parts.push(`<line class="grid" x1="${frame.x}" y1="${y}" x2="${end}" y2="${y}"/>`)
    parts.push(`<text class="faint" x="${frame.x - 6}" y="${round(y + 4)}" text-anchor="end">${tick}</text>`)
  }
  parts.push(`<rect class="frame" x="${frame.x}" y="${frame.y}" width="${frame.w}" height="${frame.h}"/>`)
  parts.push(
    `<text class="faint" x="${round(frame.x + frame.w / 2)}" y="${floor + 32}" text-anchor="middle">training, seconds</text>`,
    `<text class="faint" x="${end}" y="20" text-anchor="end">P@1, %</text>`,
  )

  const marks = points.map((point) => ({ ...point, x: across(point.seconds), y: up(point.quality) }))
  const taken = marks.map(({ x, y }) => ({ x: x - 7, y: y - 7, w: 14, h: 14 }))
  const names = []
  for (const mark of marks) {
    const number = order.indexOf(mark.system)
    const css = `s${number % SHAPES.length}`
    parts.push(
      `<g><title>${escaped(`${mark.system}: ${mark.seconds.toPrecision(3)} s, P@1 ${mark.quality.toFixed(2)} %`)}</title>${SHAPES[number % SHAPES.length](mark.x, mark.y, css)}</g>`,
    )
    const box = placeName(mark.system, mark, marks, taken, frame)
    taken.push(box)
    const ours = number === 0 ? ' ours' : ''
    names.push(
      `<text class="${css}${ours}" x="${round(box.x)}" y="${round(box.y + 10)}">${escaped(mark.system)}</text>`,
    )
  }
  return [...parts, ...names].join('\n')
}

/** The sets and marks of results: systems that were measured. */
export function panelsOf(results) {
  return results.sets.map((set) => ({
    name: set.name,
    points: set.systems
      .filter((system) => system.best)
      .map(({ name, best }) => ({ system: name, seconds: best.trainSeconds, quality: best.precision[1] })),
  }))
}

/**
 * The picture.
 *
 * @param {{ name: string, points: { system: string, seconds: number, quality: number }[] }[]} panels
 * @param {string[]} order - All systems, ours first: their colours and shapes.
 */
export function chart(panels, order) {
  const shown = panels.filter(({ points }) => points.length > 0)
  const columns = Math.max(1, Math.min(3, shown.length))
  const [width, height] = [columns * WIDTH, Math.max(1, Math.ceil(shown.length / columns)) * HEIGHT]
  const groups = shown.map((one, i) => {
    const [x, y] = [(i % columns) * WIDTH, Math.floor(i / columns) * HEIGHT]
    return `<g transform="translate(${x} ${y})">\n${panel(one, order)}\n</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="Training seconds against P@1 of each system on each data set">
<style>${STYLE}
</style>
<rect class="ground" width="${width}" height="${height}"/>
${groups.join('\n')}
</svg>
`
}
