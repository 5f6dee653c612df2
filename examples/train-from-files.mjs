// From a text file to a model file. Ctrl-C ends the training in order and leaves no file behind.
//
//   node examples/train-from-files.mjs <train.txt[.gz]> <model> [names of labels, one a line]

import { readFileSync } from 'node:fs'
import { AquilaError, forecast, readXmc, XLinear } from 'aquila-xmc'

const [data, out, names] = process.argv.slice(2)
if (out === undefined) {
  console.error('usage: node examples/train-from-files.mjs <train.txt[.gz]> <model> [labels.txt]')
  process.exit(2)
}
const labelNames =
  names &&
  readFileSync(names, 'utf8')
    .replace(/^\uFEFF/, '')
    .trimEnd()
    .split(/\r?\n/)

const stop = new AbortController()
process.once('SIGINT', () => stop.abort(new AquilaError('CANCELLED', 'cancelled')))
const { signal } = stop

let stage = ''
const onProgress = (progress) => {
  if (progress.stage === stage) return
  stage = progress.stage
  console.log(`${progress.seconds.toFixed(1).padStart(6)} s  ${stage}`)
}

try {
  const { x, y } = await readXmc(data, { signal })
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`
  console.log(`${x.rows} rows, ${x.cols} features, ${y.cols} labels`)
  console.log(`forecast: ${megabytes(await forecast(x, y))} of memory at most`)
  const model = await XLinear.train(
    x,
    y,
    { tree: { maxLeaf: 100 }, labelNames },
    { signal, onProgress, seed: 0, memoryLimit: 8e9 },
  )
  await model.save(out, { signal })
  console.log(
    `${out}: ${megabytes(model.info.bytes)} after ${model.report.seconds.total.toFixed(2)} s of training`,
  )
} catch (error) {
  if (!(error instanceof AquilaError)) throw error
  console.error(`${error.code}: ${error.message}`)
  process.exitCode = 1
}
