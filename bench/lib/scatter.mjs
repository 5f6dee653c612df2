// A picture of time against quality: a panel for each set, a mark for each system.

import { axes, CHARACTER, escaped, FRAME, logarithmic, look, mark, plain, round, sheet } from './chart.mjs'

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
function placeName(name, own, marks, taken) {
  const w = name.length * CHARACTER
  const h = 13
  const { x, y } = own
  const boxes = []
  for (const lift of [0, -8, 8, -16, 16, -24, 24, -32, 32]) {
    boxes.push({ x: x + 10, y: y - h / 2 + lift, w, h }, { x: x - 10 - w, y: y - h / 2 + lift, w, h })
    if (Math.abs(lift) >= 16) {
      boxes.push({ x: x - w / 2, y: y - h / 2 + lift, w, h }, { x: x - 8, y: y - h / 2 + lift, w, h })
      boxes.push({ x: x + 8 - w, y: y - h / 2 + lift, w, h })
    }
  }
  const others = marks.filter((other) => other !== own)
  const cost = (box) => {
    const near = distance(box, own)
    const covered = taken.filter((other) => overlap(box, other)).length
    const outside =
      box.x < FRAME.x || box.x + w > FRAME.x + FRAME.w || box.y < FRAME.y || box.y + h > FRAME.y + FRAME.h
    const mistaken = others.filter((other) => distance(box, other) < near + 4).length
    return near + 60 * covered + 30 * mistaken + (outside ? 500 : 0)
  }
  const costs = boxes.map(cost)
  return boxes[costs.indexOf(Math.min(...costs))]
}

/** One panel. */
function panel({ name, points }, order) {
  const seconds = points.map((point) => point.seconds)
  const quality = points.map((point) => point.quality)
  // A little air around the marks; differences of a fraction of a point must not look large.
  const middle = (Math.min(...quality) + Math.max(...quality)) / 2
  const reach = Math.max(1, 0.65 * (Math.max(...quality) - Math.min(...quality)))
  const x = logarithmic(Math.min(...seconds) / 1.6, Math.max(...seconds) * 1.6)
  const y = plain(middle - reach, middle + reach)
  const { parts, across, up } = axes(name, { ...x, label: 'training, seconds' }, { ...y, label: 'P@1, %' })

  const marks = points.map((point) => ({ ...point, x: across(point.seconds), y: up(point.quality) }))
  const taken = marks.map(({ x, y }) => ({ x: x - 7, y: y - 7, w: 14, h: 14 }))
  const names = []
  for (const one of marks) {
    const number = order.indexOf(one.system)
    const told = `${one.system}: ${one.seconds.toPrecision(3)} s, P@1 ${one.quality.toFixed(2)} %`
    parts.push(`<g><title>${escaped(told)}</title>${mark(number, one.x, one.y)}</g>`)
    const box = placeName(one.system, one, marks, taken)
    taken.push(box)
    const ours = number === 0 ? ' ours' : ''
    names.push(
      `<text class="s${look(number)}${ours}" x="${round(box.x)}" y="${round(box.y + 10)}">${escaped(one.system)}</text>`,
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
export function scatter(panels, order) {
  const shown = panels.filter(({ points }) => points.length > 0)
  return sheet(
    shown.map((one) => panel(one, order)),
    { title: 'Training seconds against P@1 of each system on each data set' },
  )
}
