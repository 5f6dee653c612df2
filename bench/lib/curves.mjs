// A picture of how measures change: in each panel a line for each series, with bars of one standard deviation.

import { axes, escaped, even, logarithmic, look, mark, plain, round, sheet } from './chart.mjs'

/** An axis over values, with a little air around them. */
function axis({ label, kind = 'plain', values }) {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  if (kind === 'even') return { ...even([...new Set(values)]), label }
  if (kind === 'log') return { ...logarithmic(low / 1.4, high * 1.4), label }
  const air = 0.06 * (high - low) || Math.abs(low) * 0.1 || 1
  return { ...plain(low - air, high + air), label }
}

/** The line of one series: a path, bars, marks. */
function line({ name, points, sign = true }, number, { across, up }) {
  const css = `l${look(number)}`
  const path = points.map((p, i) => `${i === 0 ? 'M' : 'L'}${across(p.x)} ${up(p.y)}`).join(' ')
  // What is drawn for comparison only has no marks.
  if (!sign) return [`<path class="line grid" stroke-dasharray="5 4" d="${path}"/>`]
  const parts = [`<path class="line ${css}" d="${path}"/>`]
  for (const { x, y, sd = 0 } of points) {
    const at = across(x)
    if (sd > 0)
      parts.push(`<line class="${css}" x1="${at}" y1="${up(y - sd)}" x2="${at}" y2="${up(y + sd)}"/>`)
    const told = `${name}, ${x}: ${Number(y.toPrecision(4))}${sd > 0 ? ` ± ${Number(sd.toPrecision(2))}` : ''}`
    // Half the size of the marks that stand alone.
    const place = `translate(${round(at / 2)} ${round(up(y) / 2)}) scale(0.5)`
    parts.push(`<g transform="${place}"><title>${escaped(told)}</title>${mark(number, at, up(y))}</g>`)
  }
  return parts
}

function panel({ name, x, y, lines }, order) {
  const points = lines.flatMap((one) => one.points)
  const heights = points.flatMap(({ y, sd = 0 }) => [y - sd, y + sd])
  const scale = axes(
    name,
    axis({ ...x, values: points.map((point) => point.x).sort((a, b) => a - b) }),
    axis({ ...y, values: heights }),
  )
  return [...scale.parts, ...lines.flatMap((one) => line(one, order.indexOf(one.name), scale))].join('\n')
}

/**
 * The picture.
 *
 * @param {{ name: string, x: { label: string, kind?: 'plain' | 'log' | 'even' }, y: { label: string, kind?: string },
 *   lines: { name: string, sign?: boolean, points: { x: number, y: number, sd?: number }[] }[] }[]} panels
 * @param {string[]} order - All series: their colours and shapes.
 * @param {string} title - What a reader who cannot see it is told.
 */
export function curves(panels, order, title) {
  const shown = panels.filter(({ lines }) => lines.some(({ points }) => points.length > 0))
  return sheet(
    shown.map((one) => panel(one, order)),
    { title, lines: true, legend: order.map((name, number) => [name, number]) },
  )
}
