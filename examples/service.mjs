// An HTTP service around a model.
//
//   node examples/service.mjs <model> [port]
//
//   POST /predict  { "indices": [3, 17], "values": [0.4, 0.9] }      one row: answered at once, on this thread
//   POST /batch    { "rows": [{ "indices": …, "values": … }, …] }    many rows: on threads of the engine
//   GET  /model    what is loaded
//   POST /reload   opens the model file again (as does SIGHUP); requests go on meanwhile
//
// To deploy a new model, write it over the old name (`model.save` and `aquila train` replace files in one step), then
// reload. To use more cores, run this in several worker threads or processes: all of them map the same file, so its
// bytes are in memory once. Each of them reloads for itself.

import { createServer } from 'node:http'
import { AquilaError, Csr, XLinear } from 'aquila-xmc'

const [path, port = '8080'] = process.argv.slice(2)
if (path === undefined) {
  console.error('usage: node examples/service.mjs <model> [port]')
  process.exit(2)
}
const SEARCH = { k: 5, beam: 10 }
const MOST_BYTES = 1 << 20
const MOST_ROWS = 1_000
const MOST_BATCHES = 4

let model = await XLinear.open(path, { verify: true })
let batches = 0
let reloading

/** Takes over a new model once it is open and sound; a bad file leaves the old one at work. */
async function swap() {
  const next = await XLinear.open(path, { verify: true })
  const old = model
  model = next
  // Batches that run on the old model end as if nothing had happened.
  old.close()
}

/** Reloads that are asked for at once are one reload. */
function reload() {
  reloading ??= swap().finally(() => {
    reloading = undefined
  })
  return reloading
}

class Refusal extends Error {
  constructor(status, code, message) {
    super(message)
    this.status = status
    this.code = code
  }
}

async function body(request) {
  const chunks = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) throw new Refusal(413, 'TOO_LARGE', `a body has at most ${MOST_BYTES} bytes`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    throw new Refusal(400, 'PARSE', 'the body is no JSON')
  }
}

const isNumber = (value) => typeof value === 'number'
const isId = (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32

/** A row of the request; typed arrays would turn what is no number into 0, so look first. */
function row(given) {
  const { indices, values } = given ?? {}
  if (!Array.isArray(indices) || !indices.every(isId))
    throw new Refusal(400, 'INVALID_ARGUMENT', 'indices must be a list of feature ids')
  if (!Array.isArray(values) || !values.every(isNumber))
    throw new Refusal(400, 'INVALID_ARGUMENT', 'values must be a list of numbers')
  // In a batch, what one row has too many would become the next one's.
  if (indices.length !== values.length)
    throw new Refusal(400, 'SHAPE_MISMATCH', `${indices.length} indices but ${values.length} values`)
  return { indices: Uint32Array.from(indices), values: Float32Array.from(values) }
}

const answer = (from, { labels, scores }) =>
  Array.from(labels, (label, i) => ({ label, name: from.labelName(label), score: scores[i] }))

async function batch(given) {
  if (!Array.isArray(given?.rows) || given.rows.length > MOST_ROWS)
    throw new Refusal(400, 'INVALID_ARGUMENT', `rows must be a list of at most ${MOST_ROWS} rows`)
  if (batches >= MOST_BATCHES) throw new Refusal(503, 'BUSY', 'too many batches at once: try again')
  const rows = given.rows.map(row)
  const indptr = new Uint32Array(rows.length + 1)
  rows.forEach(({ indices }, i) => {
    indptr[i + 1] = indptr[i] + indices.length
  })
  const indices = new Uint32Array(indptr[rows.length])
  const values = new Float32Array(indptr[rows.length])
  rows.forEach((row, i) => {
    indices.set(row.indices, indptr[i])
    values.set(row.values, indptr[i])
  })
  // A reload must not come between the rows and their labels' names: hold on to one model.
  const from = model
  const names = from.labelNames
  const x = Csr.from({ rows: rows.length, cols: from.info.features, indptr, indices, values })
  batches++
  try {
    const top = await from.predict(x, SEARCH, { threads: 2 })
    return Array.from({ length: top.rows }, (_, i) =>
      answer({ labelName: (label) => names[label] }, top.row(i)),
    )
  } finally {
    batches--
    x.close()
  }
}

const routes = {
  'POST /predict': async (request) => {
    const given = row(await body(request))
    return answer(model, model.predictOne(given, SEARCH))
  },
  'POST /batch': async (request) => batch(await body(request)),
  'GET /model': async () => {
    const { features, labels, bytes, version, seed } = model.info
    return { features, labels, bytes, version, seed }
  },
  'POST /reload': async () => {
    await reload()
    return { reloaded: true }
  },
}

/** Faults of the request are the client's, all else is ours. */
const CLIENT = new Set([
  'INVALID_ARGUMENT',
  'SHAPE_MISMATCH',
  'NOT_FINITE',
  'INDEX_OUT_OF_RANGE',
  'UNSORTED_INDICES',
  'DUPLICATE_INDEX',
])

const server = createServer(async (request, response) => {
  const send = (status, value) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(value)}\n`)
  }
  try {
    const route = routes[`${request.method} ${request.url}`]
    if (!route) throw new Refusal(404, 'NOT_FOUND', 'no such route')
    send(200, await route(request))
  } catch (error) {
    const { code = 'INTERNAL', message } = error
    const status = error.status ?? (error instanceof AquilaError && CLIENT.has(code) ? 400 : 500)
    if (status === 413) response.shouldKeepAlive = false
    send(status, { code, message })
  }
})
server.requestTimeout = 10_000
server.maxConnections = 1_000
server.listen(Number(port), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))

process.on('SIGHUP', () => reload().catch((error) => console.error(`reload: ${error.message}`)))
// Requests that have begun get their answers; then nothing keeps the process alive.
process.once('SIGTERM', () => server.close(() => model.close()))
