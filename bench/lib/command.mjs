// What the commands share: reading their options, and ending with one clear line.

import { parseArgs } from 'node:util'

/** Something that the user can mend: told without a stack. */
export class Refusal extends Error {}

export const say = (text) => process.stdout.write(`${text}\n`)

/** The options of the command line; `undefined` where help is asked for. */
export function optionsOf(options) {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', default: false } } })
    return values.help ? undefined : values
  } catch (error) {
    throw new Refusal(error.message)
  }
}

/** A whole number. */
export function count(values, name, least) {
  const value = Number(values[name])
  if (!Number.isSafeInteger(value) || value < least)
    throw new Refusal(`Expected an integer of at least ${least} for --${name} but received ${values[name]}`)
  return value
}

/** The parts of a list, each one of those there are. */
export function list(text, there, what) {
  const names = text.split(',').filter((name) => name !== '')
  for (const name of names)
    if (!there.includes(name))
      throw new Refusal(`Expected ${what} of ${there.join(', ') || 'none'} but received ${name}`)
  return [...new Set(names)]
}

/** Runs a command; what fails becomes a line and exit code 1. */
export async function command(name, work) {
  try {
    await work()
  } catch (error) {
    process.stderr.write(`${name}: ${error instanceof Refusal ? error.message : error.stack}\n`)
    process.exitCode = 1
  }
}
