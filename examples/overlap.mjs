// A label with two meanings: "bass" is a fish and an instrument. With overlap it hangs under two leaves of the tree, and
// the model tells what it means in each.
//
//   node examples/overlap.mjs

import { XLinear } from 'aquila-xmc'
import { labelMatrix, random, tfidf } from './lib/catalogue.mjs'

// Topics with words that all of their labels share, and labels with words of their own.
const TOPICS = {
  'river net hook boat': {
    bass: 'fin bait',
    trout: 'brook spotted',
    salmon: 'upstream smoked',
    pike: 'teeth reeds',
    eel: 'slippery night',
  },
  'stage concert tune band': {
    bass: 'amplifier groove',
    violin: 'bow orchestra',
    flute: 'breath silver',
    trumpet: 'brass fanfare',
    harp: 'strings angel',
  },
  'flour oven dough crust': {
    bread: 'loaf yeast',
    pizza: 'tomato naples',
    pretzel: 'salt knot',
    scone: 'tea cream',
    bagel: 'ring sesame',
  },
  'rail track station signal': {
    tram: 'street bell',
    metro: 'tunnel escalator',
    sleeper: 'cabin midnight',
    freight: 'wagon cargo',
    monorail: 'beam overhead',
  },
}
const words = []
const labelNames = []
const idOf = (names, name) => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1)

const next = random(1)
const pick = (list) => list[Math.floor(next() * list.length)]
const texts = []
for (const [shared, labels] of Object.entries(TOPICS))
  for (const [name, own] of Object.entries(labels))
    for (let i = 0; i < 40; i++) {
      const text = [
        pick(shared.split(' ')),
        pick(shared.split(' ')),
        ...(i % 3 ? [pick(own.split(' '))] : []),
      ]
      texts.push({ words: text.map((word) => idOf(words, word)), labels: [idOf(labelNames, name)] })
    }

const model = await XLinear.train(tfidf(texts, words.length)(texts), labelMatrix(texts, labelNames.length), {
  tree: { maxLeaf: 6 },
  overlap: { copies: 2 },
  labelNames,
  featureNames: words,
})
const { labels, several } = model.info
console.log(`${labels} labels, ${several} of them under several leaves`)
for (const { name, leaves } of await model.meanings({ features: 2 }))
  for (const { neighbours, features } of leaves) {
    const beside = [...neighbours].map((label) => model.labelName(label))
    console.log(`${name} beside ${beside.join(', ')}: ${features.map((feature) => feature.name).join(', ')}`)
  }

// One search finds it by either meaning.
for (const text of ['river bait', 'stage groove']) {
  const indices = Uint32Array.from(text.split(' '), (word) => words.indexOf(word)).sort()
  const { labels } = model.predictOne({ indices, values: new Float32Array(2).fill(1) }, { k: 1 })
  console.log(`${text}: ${model.labelName(labels[0])}`)
}
model.close()
