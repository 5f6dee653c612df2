// How a command ends that does not end well. Nothing here needs the native library, which may be what is missing.

import { constants } from 'node:os'
import { AquilaError } from '../errors.js'

let interruptedBy: NodeJS.Signals | undefined

/**
 * Runs work that Ctrl-C cancels: the work ends in order, then the process with code 130, as shells expect. A second
 * Ctrl-C ends it at once.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const stop = (name: NodeJS.Signals) => {
    interruptedBy = name
    controller.abort(new AquilaError('CANCELLED', 'cancelled'))
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    return await work(controller.signal)
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}

/**
 * Ends a failed command: one line on stderr that says what went wrong. Who asked for JSON gets code and message in that
 * form too, on standard output, where the result would have been.
 */
export function fail(error: unknown, json = process.argv.includes('--json')): void {
  const text = error instanceof Error ? error.message : String(error)
  const message = text.replaceAll(/\s*\n\s*/g, ' ')
  if (process.env.AQUILA_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`)
  else process.stderr.write(`aquila: ${message}\n`)
  const code = error instanceof AquilaError ? error.code : 'INTERNAL'
  if (json) process.stdout.write(`${JSON.stringify({ error: { code, message } })}\n`)
  process.exitCode = interruptedBy ? 128 + constants.signals[interruptedBy] : 1
}
