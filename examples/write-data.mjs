// Writes the invented catalogue as files: train.txt.gz and test.txt.gz (Extreme Classification Repository text),
// labels.txt and words.txt (one name a line).
//
//   node examples/write-data.mjs <folder> [rows]

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeXmc } from 'aquila-xmc'
import { catalogue, labelMatrix, tfidf } from './lib/catalogue.mjs'

const [folder, rows = '30000'] = process.argv.slice(2)
if (folder === undefined) {
  console.error('usage: node examples/write-data.mjs <folder> [rows]')
  process.exit(2)
}
const { train, test, words, labelNames } = catalogue({
  rows: Number(rows),
  testRows: Math.max(100, Math.round(Number(rows) / 10)),
})
// The weights of words are learned from the training records alone.
const features = tfidf(train, words.length)
mkdirSync(folder, { recursive: true })
for (const [name, records] of Object.entries({ train, test })) {
  const path = join(folder, `${name}.txt.gz`)
  await writeXmc(path, features(records), labelMatrix(records, labelNames.length))
  console.log(`${path}: ${records.length} rows`)
}
writeFileSync(join(folder, 'labels.txt'), `${labelNames.join('\n')}\n`)
writeFileSync(join(folder, 'words.txt'), `${words.join('\n')}\n`)
