// Measures a model on test rows. With the training file too, rare labels are weighed up (propensity-scored measures).
//
//   node examples/evaluate.mjs <model> <test.txt[.gz]> [train.txt[.gz]]

import { evaluate, readXmc, XLinear } from 'aquila-xmc'

const [file, test, train] = process.argv.slice(2)
if (test === undefined) {
  console.error('usage: node examples/evaluate.mjs <model> <test.txt[.gz]> [train.txt[.gz]]')
  process.exit(2)
}
const model = await XLinear.open(file)
const { x, y } = await readXmc(test)
const propensity = train === undefined ? undefined : { trainY: (await readXmc(train)).y }

const ks = [1, 3, 5]
const top = await model.predict(x, { k: Math.max(...ks), beam: 10 })
const report = await evaluate(top, y, { k: ks, propensity })

console.log(`${report.rows} rows, ${report.unlabelledRows} of them without labels`)
console.log(`${''.padEnd(12)}${ks.map((k) => `@${k}`.padStart(8)).join('')}`)
for (const name of ['precision', 'ndcg', 'recall', 'psp', 'psndcg']) {
  const at = report[name]
  if (at) console.log(`${name.padEnd(12)}${ks.map((k) => (100 * at[k]).toFixed(2).padStart(8)).join('')}`)
}
model.close()
