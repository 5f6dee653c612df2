// Puts a summary of a results file into the README, between its two markers; every figure stands beside the results:
//
//   node bench/update-readme.mjs [RESULTS.json] [README.md]
//
// By default the newest comparison in bench/results, and the project's README.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { root } from '../scripts/lib/run.mjs'
import { fill, summary } from './lib/report.mjs'

function newest() {
  const folder = join(root, 'bench/results')
  const names = existsSync(folder) ? readdirSync(folder) : []
  // Comparisons under other names are of sets that the README does not show.
  const last = names
    .filter((name) => /^\d{4}-\d\d-\d\d-peers\.json$/.test(name))
    .sort()
    .at(-1)
  if (last === undefined) throw new Error('bench/results has no comparison yet: npm run bench makes one')
  return join(folder, last)
}

try {
  const path = resolve(process.argv[2] ?? newest())
  const readme = resolve(process.argv[3] ?? join(root, 'README.md'))
  const results = JSON.parse(readFileSync(path, 'utf8'))
  if (results.format !== 1 || !results.peers) throw new Error(`${path}: not a comparison of this format`)
  const picture = relative(dirname(readme), path.replace(/\.json$/, '.svg')).replaceAll(sep, '/')
  const base = picture.replace(/\.svg$/, '')
  const more = `Every set, with the quality of the answers: [${base}.md](${base}.md). How it is measured: [bench/README.md](bench/README.md).`
  writeFileSync(readme, fill(readFileSync(readme, 'utf8'), `${summary(results, picture)}\n\n${more}`))
} catch (error) {
  process.stderr.write(`update-readme: ${error.message}\n`)
  process.exitCode = 1
}
