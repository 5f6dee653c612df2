// Makes a set with the shape of Amazon-670K, or of a fraction of it:
//
//   node bench/generate.mjs --out DIR [--name NAME] [--scale 0.1] [--seed 0]
//
// writes DIR/NAME.{X,Y}.{trn,tst}.npz, which `npm run bench -- --features DIR` takes.

import { mkdir } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { built } from './lib/built.mjs'
import { generate } from './lib/generator.mjs'
import { file } from './lib/sets.mjs'

const USAGE =
  'node bench/generate.mjs --out DIR [--name NAME] [--scale 0.1] [--seed 0]; a scale of 1 is as large as Amazon-670K'

function read() {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      name: { type: 'string' },
      scale: { type: 'string', default: '0.1' },
      seed: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  const [scale, seed] = [Number(values.scale), Number(values.seed)]
  if (values.out === undefined) throw new Error(`Expected --out DIR: ${USAGE}`)
  if (!(scale > 0 && scale <= 4))
    throw new Error(`Expected a number above 0 and at most 4 for --scale but received ${values.scale}`)
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new Error(`Expected an integer of at least 0 for --seed but received ${values.seed}`)
  return { out: values.out, name: values.name ?? `gen-${scale}`, scale, seed }
}

try {
  const options = read()
  if (!options) console.log(USAGE)
  else {
    const { Csr, writeNpz } = await built()
    await mkdir(options.out, { recursive: true })
    for (const [end, { x, y }] of Object.entries(generate(options.scale, options.seed))) {
      await writeNpz(file(options.out, options.name, `X.${end}`), Csr.from(x))
      await writeNpz(file(options.out, options.name, `Y.${end}`), Csr.from(y))
      const [words, labels] = [x.indices.length / x.rows, y.indices.length / y.rows]
      const known = new Set(y.indices).size
      console.log(
        `${options.name} ${end}: ${x.rows} rows, ${x.cols} features, ${y.cols} labels (${known} with rows), ${words.toFixed(1)} features and ${labels.toFixed(2)} labels a row`,
      )
    }
  }
} catch (error) {
  process.stderr.write(`generate: ${error.message}\n`)
  process.exitCode = 1
}
