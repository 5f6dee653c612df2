// Why the native library cannot be loaded, and what helps.

import { AquilaError } from './errors.js'

const CPUS: Record<string, string> = { x86_64: 'x64', aarch64: 'arm64' }
const SYSTEMS: Record<string, string> = { windows: 'win32' }
const LIBCS: Record<string, string> = { gnu: 'glibc', musl: 'musl' }

/** A Rust target in Node's words: `linux x64 glibc`. */
function nameOf(target: string): string {
  const [cpu = '', , system = '', abi = ''] = target.split('-')
  const libc = system === 'linux' ? LIBCS[abi] : undefined
  return [SYSTEMS[system] ?? system, CPUS[cpu] ?? cpu, libc].filter((part) => part !== undefined).join(' ')
}

/** This system in the same words. */
function here(): string {
  const { platform, arch } = process
  if (platform !== 'linux') return `${platform} ${arch}`
  const report = process.report as { excludeNetwork?: boolean; getReport(): object }
  const { excludeNetwork } = report
  // Its report looks up the names of open connections otherwise, which may take long.
  report.excludeNetwork = true
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } }
  if (excludeNetwork !== undefined) report.excludeNetwork = excludeNetwork
  return `${platform} ${arch} ${header?.glibcVersionRuntime ? 'glibc' : 'musl'}`
}

/**
 * What the system said of a library that is there. The loader's error leads to those of all its attempts, of which it
 * keeps the messages alone; Node's own begin with "Cannot".
 */
function refusal(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause)
    if (/\.node\b/.test(at.message) && !at.message.startsWith('Cannot')) return at.message.split('\n')[0]
  return undefined
}

/** The error of a package without a library that this system loads; `targets` are those of the package. */
export function unloadable(targets: readonly string[], cause: unknown): AquilaError {
  const [system, names] = [here(), targets.map(nameOf)]
  const why = refusal(cause)
  const reason = why
    ? `the system refused to load it (${why})`
    : names.includes(system)
      ? 'the package that holds it is not installed (was it left out by --omit=optional, or installed on another system?)'
      : 'there is none for this platform'
  return new AquilaError(
    'UNSUPPORTED_PLATFORM',
    `aquila-xmc has no native library on ${system}: ${reason}. Supported are ${names.join(', ')}; to build it from source, run npm run build in a clone of the repository, which needs Rust`,
    { cause },
  )
}

/** The error of code that was taken out of the package. */
export function bundled(cause?: unknown): AquilaError {
  return new AquilaError(
    'UNSUPPORTED',
    'aquila-xmc was bundled, but its native library cannot be part of a bundle: mark aquila-xmc as external (esbuild: --external:aquila-xmc) and install it beside the bundle',
    { cause },
  )
}
