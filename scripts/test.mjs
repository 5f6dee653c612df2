// `npm test`: sets a bare clone up, builds, then runs the engine's tests and the API's, and ends with their totals.
import { stripVTControlCharacters } from 'node:util'
import { bootstrap, capture, run, tool } from './lib/run.mjs'

bootstrap()
run(process.execPath, ['scripts/build.mjs'])

/** Adds up the numbers that a pattern captures. */
const sum = (text, pattern) =>
  [...text.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0)
// Runners colour their summaries on a terminal.
const plain = stripVTControlCharacters

const engine = await capture('cargo', ['test', '--workspace', '--no-fail-fast'])
const api = await capture(process.execPath, [tool('vitest'), 'run'])
const [rust, js] = [plain(engine.text), plain(api.text)]
const summary = /^\s*Tests\s.*$/m.exec(js)?.[0] ?? ''
const passed = sum(rust, /^test result: .*?(\d+) passed/gm) + sum(summary, /(\d+) passed/g)
const failed = sum(rust, /^test result: .*?(\d+) failed/gm) + sum(summary, /(\d+) failed/g)

// A runner that fails without a failed test (a build error, a crash) must not look like success.
const broken = [engine, api].filter(({ code }) => code !== 0).length
if (broken > 0 && failed === 0) console.error(`${broken} of the 2 test runners ended with an error`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(broken > 0 || failed > 0 ? 1 : 0)
