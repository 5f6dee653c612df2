// Makes a set whose labels are words out of another set's features:
//
//   node bench/words.mjs --features DIR --set NAME --out DIR [--seed 0]
//
// writes OUT/NAME-words.{X,Y}.{trn,tst}.npz, which `npm run bench -- --features OUT` takes.

import { mkdir } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { built } from './lib/built.mjs'
import { file } from './lib/sets.mjs'
import { words } from './lib/words.mjs'

const USAGE = 'node bench/words.mjs --features DIR --set NAME --out DIR [--seed 0]'

try {
  const { values } = parseArgs({
    options: {
      features: { type: 'string' },
      set: { type: 'string' },
      out: { type: 'string' },
      seed: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) console.log(USAGE)
  else {
    const { features, set, out } = values
    if (features === undefined || set === undefined || out === undefined)
      throw new Error(`Expected --features DIR, --set NAME and --out DIR: ${USAGE}`)
    const seed = Number(values.seed)
    if (!Number.isSafeInteger(seed) || seed < 0)
      throw new Error(`Expected an integer of at least 0 for --seed but received ${values.seed}`)
    const { Csr, readNpz, writeNpz } = await built()
    await mkdir(out, { recursive: true })
    const read = async (end) => {
      const x = await readNpz(file(features, set, `X.${end}`))
      return { rows: x.rows, cols: x.cols, ...x.toArrays() }
    }
    const [trn, tst] = await Promise.all([read('trn'), read('tst')])
    for (const [end, { x, y }] of Object.entries(words(trn, tst, seed))) {
      await writeNpz(file(out, `${set}-words`, `X.${end}`), Csr.from(x))
      await writeNpz(file(out, `${set}-words`, `Y.${end}`), Csr.from(y))
      const labels = (y.indices.length / y.rows).toFixed(2)
      console.log(
        `${set}-words ${end}: ${x.rows} rows, ${x.cols} features, ${y.cols} labels, ${labels} a row`,
      )
    }
  }
} catch (error) {
  process.stderr.write(`words: ${error.message}\n`)
  process.exitCode = 1
}
