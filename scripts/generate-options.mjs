// Writes ts/generated/options.ts: option interfaces with their documentation, from the engine's parameter tables.
import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from './lib/run.mjs'

const { parameterSpecs } = createRequire(import.meta.url)(join(root, 'ts/native/binding.cjs'))
const specs = parameterSpecs()

const type = (spec) => {
  if (spec.kind === 'choice') return spec.choices.map((text) => `'${text}'`).join(' | ')
  return spec.kind === 'boolean' ? 'boolean' : 'number'
}

// The outermost numbers of f32 stand for "no bound": their digits would tell a reader nothing.
const plain = (value) => {
  if (typeof value === 'number' && Math.abs(value) > 1e38)
    return value < 0 ? 'the lowest number' : 'the largest number'
  return `\`${typeof value === 'string' ? `'${value}'` : value}\``
}

function field(spec, name, indent) {
  const lines = [spec.doc]
  if (spec.kind === 'integer' || spec.kind === 'number') lines.push(`Takes ${spec.takes}.`)
  lines.push(`@defaultValue ${plain(spec.default)}`)
  const doc = lines.map((line) => `${indent} * ${line.replaceAll('*/', '*\\/')}`).join('\n')
  return `${indent}/**\n${doc}\n${indent} */\n${indent}${name}?: ${type(spec)} | undefined\n`
}

/** Nested interfaces for names such as "tree.maxLeaf": one for each group. */
function interfaces(name, doc, table, groupDocs) {
  const groups = new Map()
  let own = ''
  for (const spec of table) {
    const dot = spec.name.indexOf('.')
    if (dot < 0) own += field(spec, spec.name, '  ')
    else {
      const group = spec.name.slice(0, dot)
      groups.set(group, (groups.get(group) ?? '') + field(spec, spec.name.slice(dot + 1), '  '))
    }
  }
  let text = ''
  for (const [group, fields] of groups) {
    const title = `${group[0].toUpperCase()}${group.slice(1)}Options`
    const groupDoc = groupDocs[group] ?? `Options of the group ${group}.`
    text += `/** ${groupDoc} */\nexport interface ${title} {\n${fields}}\n\n`
    own += `  /** ${groupDoc} */\n  ${group}?: ${title} | undefined\n`
  }
  return `${text}/** ${doc} */\nexport interface ${name} {\n${own}}\n\n`
}

const text = [
  "// Made from the engine's parameter tables by scripts/generate-options.mjs: change them there.\n\n",
  interfaces('TrainParameters', 'The parameters of training.', specs.train, {
    tree: 'How labels become a tree.',
    solver: 'How the classifiers are learned.',
    overlap: 'Whether and how labels hang under several leaves.',
    model: 'What the model keeps.',
  }),
  interfaces('PredictParameters', 'How a row is looked up.', specs.predict, {}),
  interfaces('MetricParameters', 'How predictions are measured.', specs.metrics, {
    propensity: 'The two constants of the propensity model.',
  }),
  interfaces('ClusterParameters', 'How samples are clustered into groups.', specs.cluster, {}),
  interfaces('AggregateParameters', "How samples' labels become their group's.", specs.aggregate, {}),
  interfaces('AssignParameters', 'How group labels are assigned.', specs.assign, {}),
  interfaces('RefineParameters', 'How group labels are refined.', specs.refine, {}),
  interfaces('GroupParameters', 'How a model learns from groups.', specs.groups, {
    group: 'How samples get labels from their groups.',
  }),
].join('')
mkdirSync(join(root, 'ts/generated'), { recursive: true })
writeFileSync(join(root, 'ts/generated/options.ts'), `${text.trimEnd()}\n`)
