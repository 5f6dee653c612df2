// Tags per page, predictions per paragraph: labels are known for groups of rows only, and the model labels single rows.
//
//   node examples/groups.mjs

import { evaluate, Groups, XLinear } from 'aquila-xmc'
import { labelMatrix, tfidf, topicCatalogue } from './lib/catalogue.mjs'

const { train, test, words, topicNames } = topicCatalogue({ rows: 4000, testRows: 1000 })
// Every third word alone: a paragraph is shorter than a record of the catalogue, and says less.
const short = (records) => records.map(({ words }) => ({ words: words.filter((_, i) => i % 3 === 0) }))
const weigh = tfidf(short(train), words.length)
const features = (records) => weigh(short(records))
const paragraphs = features(train)

// Eight paragraphs are a page. Its tags are those of all its paragraphs: nobody says which tag is whose.
const size = 8
const pageOf = Int32Array.from(train, (_, paragraph) => Math.floor(paragraph / size))
const pages = Groups.from(pageOf)
const tagsOf = Array.from({ length: pages.size }, (_, page) => ({
  labels: [...new Set(train.slice(size * page, size * page + size).flatMap(({ labels }) => labels))].sort(
    (a, b) => a - b,
  ),
}))
const tags = labelMatrix(tagsOf, topicNames.length)
const each = (tags.nnz / tags.rows).toFixed(1)
console.log(
  `${pages.size} pages of ${size} paragraphs, ${each} tags a page, ${topicNames.length} tags in all`,
)
const { method, reasons } = await pages.advise(paragraphs, tags)
console.log(`advice: ${method}\n${reasons.map((reason) => `  ${reason}`).join('\n')}`)

// Paragraphs whose own tags are known serve to measure; the oracle learns from such alone.
const [rows, truth] = [features(test), labelMatrix(test, topicNames.length)]
const measure = async (name, model) => {
  const { precision } = await evaluate(await model.predict(rows, { k: 1 }), truth, { k: 1 })
  console.log(`${name.padEnd(8)}P@1 ${(100 * precision[1]).toFixed(1).padStart(5)} %`)
}
for (const method of ['union', 'eagle', 'refine'])
  await measure(method, await XLinear.trainGroups(paragraphs, pages, tags, { group: { method } }))
const own = labelMatrix(train, topicNames.length)
await measure('oracle', await XLinear.train(paragraphs, own))
