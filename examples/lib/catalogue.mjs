// A library's catalogue, invented: data for the examples, with labels that have names and rows made of real words.
//
// A label is a topic seen from a side: "cooking / bread / history". A record has one to four labels and holds words of
// their subjects, topics and sides, and words that tell nothing. Labels, topics and sides differ in how often they are
// used, as they do in real catalogues. The same seed gives the same records on every machine.

import { Csr } from 'aquila-xmc'

/** Subjects, their topics, and the words of each. The words before the first topic belong to the subject itself. */
const SUBJECTS = `
cooking: kitchen recipe taste oven meal
  bread: loaf dough yeast flour crust sourdough
  soup: broth stock ladle simmer noodle bowl
  cheese: milk rennet curd rind cheddar goat
  pastry: butter tart crumb glaze puff almond
  preserves: jam pickle vinegar jar brine chutney
  spices: pepper cumin saffron cardamom ginger turmeric
  seafood: fillet salmon mussel cod prawn oyster
  vegetables: carrot cabbage leek squash turnip spinach
  chocolate: cocoa truffle ganache praline caramel wafer
  coffee: espresso roast bean filter crema grinder
gardening: soil seed plant spade season
  roses: petal thorn bloom hybrid fragrance bush
  orchards: apple pear graft blossom harvest plum
  lawns: grass mower turf clover rake moss
  herbs: basil thyme mint parsley rosemary sage
  compost: worm peat heap manure leaf decay
  greenhouses: glass humidity seedling tomato vent shelf
  ponds: lily frog pump algae reed koi
  bonsai: dwarf wire juniper pot root trunk
  mushrooms: spore cap mycelium log fungus gill
  bees: hive honey queen swarm nectar comb
astronomy: sky night orbit star telescope
  planets: mars venus saturn ring jupiter moon
  comets: tail ice nucleus meteor perihelion shower
  galaxies: spiral cluster nebula dust halo dwarf
  eclipses: shadow corona totality umbra sun partial
  rockets: launch fuel booster stage engine capsule
  satellites: antenna relay telemetry solar panel ground
  cosmology: expansion redshift background inflation universe origin
  observatories: dome mirror summit detector array spectrum
  calendars: month leap equinox solstice lunar day
  astronauts: spacewalk suit station crew gravity mission
music: sound concert melody rhythm note
  piano: key pedal hammer sonata chord keyboard
  violin: bow string rosin fiddle luthier bridge
  opera: soprano aria tenor libretto stage overture
  jazz: swing saxophone improvise trumpet blues quartet
  choirs: hymn alto voice psalm harmony conductor
  drums: snare cymbal beat stick tabla conga
  guitars: fret strum pick acoustic amplifier riff
  organs: pipe bellows stop chapel manual pedalboard
  recording: microphone studio tape mixing vinyl headphone
  songs: chorus refrain tune singer lyric duet
sport: team match coach score training
  football: goal penalty striker pitch keeper league
  cycling: bicycle saddle wheel sprint peloton climb
  swimming: pool stroke lane freestyle dive butterfly
  chess: pawn knight opening endgame bishop checkmate
  climbing: rope cliff boulder harness carabiner ledge
  sailing: mast hull regatta wind anchor rudder
  running: marathon shoe pace track hurdle relay
  tennis: racket serve volley net backhand court
  skiing: snow slope lift piste binding avalanche
  archery: arrow target quiver bowstring aim longbow
animals: species wild tail fur breed
  dogs: puppy leash bark kennel retriever terrier
  cats: kitten whisker purr litter siamese claw
  horses: mare foal gallop stable bridle hoof
  birds: nest feather egg migration song beak
  whales: ocean blubber fluke krill dolphin calf
  insects: beetle ant larva antenna moth wing
  reptiles: snake lizard scale turtle venom crocodile
  elephants: tusk ivory herd trunk savanna matriarch
  wolves: pack howl den prey forest alpha
  spiders: web silk fang eight tarantula thread
history: war empire king century battle
  rome: senate legion forum emperor gladiator aqueduct
  egypt: pyramid pharaoh nile mummy papyrus temple
  vikings: longship raid norse rune fjord saga
  castles: moat tower siege drawbridge keep dungeon
  revolutions: uprising barricade liberty mob republic guillotine
  explorers: compass expedition continent cape voyage sextant
  railways: steam locomotive station rail signal carriage
  coins: mint silver hoard gold ducat treasury
  mills: water grain wheel miller sluice stone
  pirates: treasure cutlass mutiny plunder galleon flag
medicine: patient hospital disease cure nurse
  heart: artery pulse valve blood bypass rhythm
  teeth: dentist enamel molar cavity gum filling
  vaccines: dose virus immunity injection measles antibody
  eyes: retina vision glasses cataract iris pupil
  bones: fracture joint spine skeleton hip cast
  skin: rash burn allergy dermatology scar cream
  surgery: scalpel suture operation anaesthesia theatre incision
  pregnancy: birth midwife infant womb trimester ultrasound
  pharmacy: pill tablet prescription dosage capsule syrup
  nutrition: vitamin protein calorie fibre mineral fasting
computing: software program computer code user
  networks: router packet protocol cable server bandwidth
  databases: query table index transaction record schema
  compilers: parser syntax optimise token grammar linker
  graphics: pixel shader render texture polygon colour
  security: password attack encryption firewall virus hacker
  robots: arm sensor motor automation gripper servo
  websites: browser link page html domain style
  chips: silicon transistor circuit wafer processor gate
  games: player level joystick score console sprite
  algorithms: sort graph search recursion tree proof
art: artist gallery exhibition style colour
  painting: canvas oil brush pigment easel portrait
  sculpture: marble bronze chisel statue clay bust
  ceramics: kiln glaze pottery vase porcelain wheel
  prints: etching woodcut plate press lithograph edition
  mosaics: tile fragment tessera floor basilica grout
  drawing: pencil charcoal sketch paper line eraser
  tapestry: loom weave wool thread knot dye
  calligraphy: ink quill letter script parchment nib
  jewellery: ring gem pearl goldsmith brooch necklace
  icons: saint gilding altar panel halo monastery
building: house wall architect roof plan
  bridges: arch span cable pier suspension river
  cathedrals: nave spire vault buttress choir gargoyle
  windows: pane shutter frame sill glass double
  stairs: step banister spiral handrail landing tread
  bricks: mortar clay course bond mason kiln
  carpentry: timber joint saw plane nail dovetail
  plumbing: pipe tap drain valve boiler faucet
  lighthouses: beacon lamp coast keeper fog lens
  tunnels: bore excavation lining shaft underground drill
  skyscrapers: steel elevator storey facade tower foundation
nature: landscape earth wild region season
  rivers: bank delta flood current source estuary
  mountains: peak ridge glacier summit valley altitude
  deserts: dune sand oasis camel drought cactus
  forests: oak canopy fern timber pine undergrowth
  volcanoes: lava crater eruption ash magma basalt
  oceans: tide wave reef coral depth current
  storms: thunder lightning hurricane hail gale tornado
  caves: stalactite bat cavern limestone dripstone darkness
  islands: beach lagoon atoll palm ferry shore
  rocks: granite fossil quartz mineral sediment slate
travel: tourist journey country border luggage
  trains: ticket carriage platform timetable sleeper conductor
  ships: cruise cabin deck harbour captain port
  aircraft: pilot runway wing airport turbulence cockpit
  camping: tent sleeping lantern campfire stove rucksack
  hiking: trail boot signpost hut blister path
  hotels: lobby reception bed suite porter breakfast
  maps: atlas scale contour legend projection compass
  motorways: lorry lane exit toll traffic bridge
  canals: lock barge towpath basin narrowboat aqueduct
  balloons: basket burner float altitude ascent gas
society: people public state community citizen
  schools: teacher pupil lesson exam classroom homework
  elections: vote ballot candidate party parliament campaign
  newspapers: editor headline press reporter column print
  police: detective crime arrest evidence patrol officer
  prisons: cell sentence guard inmate parole escape
  money: bank loan interest inflation currency coin
  work: wage strike union factory contract pension
  families: mother marriage sibling household divorce cousin
  cities: street suburb mayor square district tram
  charity: donation volunteer shelter poverty aid fundraising
language: word speech meaning text sentence
  grammar: verb noun tense clause adjective syntax
  dialects: accent vowel village slang vernacular pronunciation
  translation: interpreter bilingual source dictionary literal idiom
  alphabets: letter vowel rune glyph script symbol
  names: surname baptism etymology nickname genealogy christening
  fairy tales: witch princess dragon wolf castle spell
  novels: plot hero chapter narrator fiction publisher
  theatre: actor stage curtain tragedy comedy rehearsal
  proverbs: saying wisdom moral metaphor fable maxim
  rhetoric: orator persuasion argument speech irony audience
household: home room clean family daily
  furniture: chair table drawer cushion wardrobe varnish
  laundry: soap iron starch washing stain clothesline
  clocks: pendulum spring dial hour gear watch
  candles: wax wick flame scent beeswax holder
  knitting: needle yarn stitch wool sweater purl
  sewing: thread hem button fabric seam zipper
  toys: doll puppet kite marble block teddy
  shoes: sole leather lace heel cobbler boot
  heating: stove chimney radiator firewood boiler insulation
  mirrors: silver frame reflection polish bevel vanity
`

/** Sides from which a topic is seen, each with words of its own. */
const SIDES = `
history: origin ancient archive tradition museum heritage
for beginners: first easy simple introduction basics lesson
tools: instrument handle blade equipment kit device
science: experiment theory measure laboratory evidence hypothesis
guidebooks: route visit map itinerary advice sight
biographies: life childhood letters diary career memoir
business: market profit customer price brand company
law: court rule licence contract judge statute
photographs: camera portrait album lens light negative
for children: child play story puzzle picture game
health: doctor symptom sleep therapy exercise wellbeing
environment: climate carbon waste recycle habitat protect
making: build workshop pattern cut glue assemble
poems: verse rhyme stanza ballad sonnet lyric
festivals: parade dance crowd lantern feast celebration
repair: fix broken replace leak patch restore
`

const BACKGROUND = `
author book volume page chapter edition index preface appendix series reader library shelf copy cover title note
reference review essay collection study survey handbook manual companion guide report paper journal letter part
new old large small great little good best early late modern general common rare famous complete short long full
many some every other several whole different various certain special important useful popular known wide open
year time world place hand way side end form point case fact question answer problem example reason idea thing
make take give find show tell learn keep begin bring write read look work use need call change follow grow turn
about above across after against along among around before behind below between beyond during inside near over
often always again almost already ever never still together today tomorrow yesterday perhaps quite rather very
`

/** Numbers from 0 to 1, the same for the same seed. */
export function random(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const lines = (text) => text.split('\n').filter((line) => line.trim() !== '')
const entry = (line) => {
  const [name, words] = line.trim().split(': ')
  return { name, words: words.split(' ') }
}

/** Picks places 0 … n − 1, the first ones more often: the weight of place i is (i + 3)^−power. */
function skewed(n, power, next) {
  const sums = new Float64Array(n)
  let sum = 0
  for (let i = 0; i < n; i++) {
    sum += (i + 3) ** -power
    sums[i] = sum
  }
  return () => {
    const at = next() * sum
    let [low, high] = [0, n - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle] > at) high = middle
      else low = middle + 1
    }
    return low
  }
}

function shuffled(n, next) {
  const order = Uint32Array.from({ length: n }, (_, i) => i)
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1))
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
}

/**
 * Makes the catalogue: `{ words, labelNames, subjects, topics, sides, train, test }`. A record of `train` and `test`
 * is `{ words, labels }`, both lists of ids.
 */
export function catalogue({ rows = 30_000, testRows = 3_000, seed = 1 } = {}) {
  const next = random(seed)
  const topics = []
  let subject
  let subjects = 0
  for (const line of lines(SUBJECTS)) {
    if (line.startsWith(' ')) topics.push({ ...entry(line), subject })
    else {
      subject = { ...entry(line), id: subjects++ }
    }
  }
  const sides = lines(SIDES).map(entry)
  const background = BACKGROUND.trim().split(/\s+/)

  const ids = new Map()
  const idOf = (word) => {
    if (!ids.has(word)) ids.set(word, ids.size)
    return ids.get(word)
  }
  for (const { subject, words } of topics) [...subject.words, ...words].forEach(idOf)
  for (const { words } of sides) words.forEach(idOf)
  background.forEach(idOf)

  const labelNames = topics.flatMap(({ name, subject }) =>
    sides.map((side) => `${subject.name} / ${name} / ${side.name}`),
  )
  const labels = labelNames.length
  const order = shuffled(labels, next)
  const popular = skewed(labels, 0.6, next)
  const common = skewed(background.length, 0.5, next)
  const below = (n) => Math.floor(next() * n)

  function record() {
    const first = order[popular()]
    const own = new Set([first])
    const [topic, side] = [Math.floor(first / sides.length), first % sides.length]
    const more = next() < 0.25 ? 0 : 1 + below(3)
    for (let i = 0; i < more; i++) {
      const chance = next()
      // Mostly another side of the same topic, or the same side of a topic of the same subject.
      if (chance < 0.55) own.add(topic * sides.length + below(sides.length))
      else if (chance < 0.9) own.add((topic - (topic % 10) + below(10)) * sides.length + side)
      else own.add(order[popular()])
    }
    const words = []
    const some = (list, n) => {
      for (let i = 0; i < n; i++) words.push(idOf(list[below(list.length)]))
    }
    for (const label of own) {
      const topic = topics[Math.floor(label / sides.length)]
      some(topic.subject.words, below(3))
      some(topic.words, 2 + below(3))
      some(sides[label % sides.length].words, 2 + below(2))
    }
    for (let i = 6 + below(8); i > 0; i--) words.push(idOf(background[common()]))
    // A few words of some other label: real records mention things that they are not about.
    for (let i = below(3); i > 0; i--) some(topics[below(topics.length)].words, 1)
    return { words, labels: [...own].sort((a, b) => a - b) }
  }

  const records = (n) => Array.from({ length: n }, record)
  return {
    train: records(rows),
    test: records(testRows),
    words: [...ids.keys()],
    labelNames,
    subjects,
    topics: topics.length,
    sides: sides.length,
  }
}

/** Labels of records as a matrix, records × labels. */
export function labelMatrix(records, labels) {
  return matrix(
    records.map((record) => record.labels.map((label) => [label, 1])),
    labels,
  )
}

/**
 * The same records labelled by their topics alone, few and well known: `{ topicNames, train, test }` beside what
 * {@link catalogue} makes.
 */
export function topicCatalogue(options) {
  const made = catalogue(options)
  const topicOf = (label) => Math.floor(label / made.sides)
  const relabel = ({ words, labels }) => ({ words, labels: [...new Set(labels.map(topicOf))] })
  const topicNames = Array.from({ length: made.topics }, (_, topic) =>
    made.labelNames[topic * made.sides].split(' / ').slice(0, 2).join(' / '),
  )
  return { ...made, topicNames, train: made.train.map(relabel), test: made.test.map(relabel) }
}

/**
 * Learns the inverse document frequencies of words from records and returns the function that turns records into
 * TF-IDF rows, records × words.
 */
export function tfidf(records, words) {
  const df = new Float64Array(words)
  for (const record of records) for (const word of new Set(record.words)) df[word]++
  const idf = df.map((n) => Math.log((1 + records.length) / (1 + n)) + 1)
  return (some) =>
    matrix(
      some.map((record) => {
        const counts = new Map()
        for (const word of record.words) counts.set(word, (counts.get(word) ?? 0) + 1)
        return [...counts]
          .map(([word, n]) => [word, (1 + Math.log(n)) * idf[word]])
          .sort((a, b) => a[0] - b[0])
      }),
      words,
    )
}

/** A matrix from rows of `[column, value]` with ascending columns. */
function matrix(rows, cols) {
  const indptr = new Uint32Array(rows.length + 1)
  rows.forEach((row, i) => {
    indptr[i + 1] = indptr[i] + row.length
  })
  const indices = new Uint32Array(indptr[rows.length])
  const values = new Float32Array(indptr[rows.length])
  let at = 0
  for (const row of rows)
    for (const [column, value] of row) {
      indices[at] = column
      values[at++] = value
    }
  return Csr.from({ rows: rows.length, cols, indptr, indices, values })
}
