// The command line: one verb for each thing the library does.

import { Command, CommanderError } from 'commander'
import { AquilaError } from '../errors.js'
import { versions } from '../runtime.js'
import { addAssign } from './assign.js'
import { addBench } from './bench.js'
import { refuseRepeated } from './common.js'
import { addEmbed } from './embed.js'
import { fail } from './ending.js'
import { addEvaluate } from './evaluate.js'
import { addGroup } from './group.js'
import { addInspect } from './inspect.js'
import { addPredict } from './predict.js'
import { addRefine } from './refine.js'
import { addTrain } from './train.js'

const program = new Command('aquila')
  .description('Extreme multi-label classification: the few right labels among thousands or millions.')
  .version(versions().aquila)
  // Set before the verbs are made, for they take it over.
  .exitOverride()
  .configureOutput({ outputError: () => {} })
for (const add of [
  addTrain,
  addPredict,
  addEvaluate,
  addGroup,
  addEmbed,
  addAssign,
  addRefine,
  addInspect,
  addBench,
])
  add(program)

refuseRepeated(program)

/** The error of a verb that does not exist, with those that do. */
const unknown = (message: string) =>
  new AquilaError(
    'INVALID_ARGUMENT',
    `${message}: expected one of ${program.commands.map((one) => one.name()).join(', ')}`,
  )

// Commander's own verb answers an unknown one with the whole help.
program
  .helpCommand(false)
  .command('help')
  .argument('[verb]')
  .description('Print the help of a verb, or this.')
  .action((name?: string) => {
    const verb = name === undefined ? program : program.commands.find((known) => known.name() === name)
    if (!verb) throw unknown(`unknown command '${name}'`)
    verb.help()
  })

// Whoever reads what we print may have seen enough, as `head` has: no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  fail(new AquilaError('IO', `the output cannot be written: ${error.message}`), false)
  process.exit()
})
// Nor does work end because nobody listens to how far it has come.
process.stderr.on('error', () => {})

// With --help behind it Commander would answer an unknown verb with the whole help: it sees the verb alone.
const given = process.argv.slice(2)
const [verb = '-'] = given
const known = verb.startsWith('-') || program.commands.some((one) => one.name() === verb)

/** What Commander refuses, as an error of ours. */
function misused({ code, message }: CommanderError): AquilaError {
  const text = message.replace(/^error: /, '')
  if (code === 'commander.unknownCommand') return unknown(text.replace('\n(Did', ' (did'))
  return new AquilaError(code === 'commander.unknownOption' ? 'UNKNOWN_OPTION' : 'INVALID_ARGUMENT', text)
}

try {
  await program.parseAsync(known ? given : [verb], { from: 'user' })
} catch (error) {
  if (!(error instanceof CommanderError)) fail(error)
  // Asked for or not, help has been printed already.
  else if (error.code.startsWith('commander.help')) process.exitCode = error.exitCode
  else if (error.exitCode !== 0) fail(misused(error))
}
