// Heavy calls: signal, progress and errors around a promise of the native library.

import { expected, translate } from './errors.js'
import { machineMemory } from './memory.js'
import type { Control, ProgressEvent } from './native/binding.cjs'
import { native } from './native.js'
import { type CallOptions, integer, only, optionsOf, type Progress } from './options.js'
import type { Turn } from './pieces.js'

// `process.exit` ends the process with jobs under way, without the hooks of environments.
process.on('exit', () => native.leave())

const KNOWN = ['signal', 'onProgress', 'threads', 'seed', 'memoryLimit'] as const

function isSignal(value: unknown): value is AbortSignal {
  return typeof (value as AbortSignal)?.addEventListener === 'function' && 'aborted' in (value as AbortSignal)
}

/** Hands reports to the user's listener. What it throws must not end the process: it becomes one warning a call. */
function deliverer(listener: (progress: Progress) => void): (events: ProgressEvent[]) => void {
  let warned = false
  return (events) => {
    for (const event of events) {
      try {
        // The engine tests that it reports no stages but these.
        listener(event as Progress)
      } catch (error) {
        if (warned) continue
        warned = true
        process.emitWarning(`onProgress threw: ${error instanceof Error ? error.message : String(error)}`, {
          code: 'AQUILA_ON_PROGRESS',
        })
      }
    }
  }
}

/**
 * Starts a native job and waits for it. `start` takes hold of what it needs before it first waits, so that callers may
 * change their arrays and close their matrices at once; `caller` is where the stack of an error begins. Where what is
 * done `stays` done, a signal that comes too late to stop it is passed over: a rejection would ask to do it again.
 */
export async function run<T>(
  call: CallOptions | undefined,
  caller: (...args: never[]) => unknown,
  start: (control: Control, turn: Turn) => Promise<T>,
  stays = false,
): Promise<T> {
  const trace: { stack?: string } = {}
  Error.captureStackTrace(trace, caller)
  const given = optionsOf(call, 'call options') as CallOptions
  only(given as Record<string, unknown>, KNOWN)
  const { signal, onProgress } = given
  if (signal !== undefined && !isSignal(signal)) throw expected('an AbortSignal', 'signal', signal)
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw expected('a function', 'onProgress', onProgress)
  const settings = {
    threads: integer(given.threads, 'threads', 0, 1024, 0),
    seed: integer(given.seed, 'seed', 0, Number.MAX_SAFE_INTEGER, 0),
    memoryLimit: integer(given.memoryLimit, 'memoryLimit', 0, Number.MAX_SAFE_INTEGER, machineMemory()),
  }
  signal?.throwIfAborted()

  const deliver = onProgress && deliverer(onProgress)
  const wake = deliver && (() => deliver(control.drain()))
  const control: Control = new native.Control(settings, wake)
  const cancel = () => control.cancel()
  const turn = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    signal?.throwIfAborted()
  }
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    const result = await start(control, turn)
    // Too late to stop the work, but the caller was promised a rejection.
    if (!stays) signal?.throwIfAborted()
    return result
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw translate(error, trace)
  } finally {
    signal?.removeEventListener('abort', cancel)
    const last = control.finish()
    deliver?.(last)
  }
}
