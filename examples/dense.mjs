// A block of embeddings beside sparse rows: the model learns from both.
//
//   node examples/dense.mjs

import { Csr, Dense, evaluate, Features, XLinear } from 'aquila-xmc'
import { labelMatrix, random, tfidf, topicCatalogue } from './lib/catalogue.mjs'

const { train, test, words, topicNames } = topicCatalogue({ rows: 4000, testRows: 1000 })

// Embeddings come from elsewhere, say a text encoder. These are invented: each topic has a direction, and a record
// lies where its topics point, give or take some noise.
const [width, next] = [16, random(7)]
const noise = () => next() + next() + next() - 1.5
const direction = topicNames.map(() => Float32Array.from({ length: width }, noise))
function embed(records) {
  const values = new Float32Array(records.length * width)
  for (const [i, { labels }] of records.entries()) {
    const row = values.subarray(i * width, (i + 1) * width)
    for (let j = 0; j < width; j++)
      row[j] = noise() + labels.reduce((sum, topic) => sum + direction[topic][j], 0)
    // A block of length 1 beside a row of length 1: both count alike.
    const length = Math.hypot(...row)
    for (let j = 0; j < width; j++) row[j] /= length
  }
  return Dense.from({ rows: records.length, cols: width, values })
}

// Every fourth word of a record alone, so that there is something left for the embeddings to tell.
const short = (records) => records.map(({ words }) => ({ words: words.filter((_, i) => i % 4 === 0) }))
const weigh = tfidf(short(train), words.length)
const unit = (matrix) => {
  const { indptr, indices, values } = matrix.toArrays()
  for (let i = 0; i < matrix.rows; i++) {
    const row = values.subarray(indptr[i], indptr[i + 1])
    const length = Math.hypot(...row)
    for (let n = 0; n < row.length; n++) row[n] /= length
  }
  return Csr.from({ rows: matrix.rows, cols: matrix.cols, indptr, indices, values })
}
const [sparse, sparseTest] = [unit(weigh(short(train))), unit(weigh(short(test)))]
const [block, blockTest] = [embed(train), embed(test)]
const y = labelMatrix(train, topicNames.length)
const truth = labelMatrix(test, topicNames.length)

const measure = async (name, rows, testRows) => {
  const model = await XLinear.train(rows, y, { labelNames: topicNames })
  const { precision } = await evaluate(await model.predict(testRows, { k: 1 }), truth, { k: 1 })
  console.log(`${name.padEnd(12)}P@1 ${(100 * precision[1]).toFixed(1).padStart(5)} %`)
  return model
}
await measure('words', sparse, sparseTest)
await measure('embeddings', Features.from(undefined, block), Features.from(undefined, blockTest))
const rows = Features.from(sparseTest, blockTest)
const both = await measure('both', Features.from(sparse, block), rows)

// A single query brings its dense values as a third array.
const { indices, values, dense } = rows.row(0)
const { labels } = both.predictOne({ indices, values, dense }, { k: 3 })
console.log(`the first test record: ${[...labels].map((label) => both.labelName(label)).join('; ')}`)
both.close()
