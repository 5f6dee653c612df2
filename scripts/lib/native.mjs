// The native library's release build, as the check looks at it.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { outlined } from './outlined.mjs'
import { root, run } from './run.mjs'

/** The platforms whose linkers are asked for a map by crates/aquila-node/build.rs and are known to write one. */
const MAPPED = /^(?:x86_64|aarch64)-unknown-linux-/

/** Where the linker leaves the map of this machine's release build; nothing where it leaves none. */
export function linkMap(host) {
  if (!MAPPED.test(host)) return undefined
  const { stdout } = run('cargo', ['metadata', '--no-deps', '--format-version', '1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  const { build_directory, target_directory } = JSON.parse(stdout)
  return join(build_directory ?? target_directory, host, 'release', 'aquila-node.map')
}

/** Whether a file is missing or older than what the native library is built from. */
export function outdated(file) {
  if (!existsSync(file)) return true
  const sources = readdirSync(join(root, 'crates'), { recursive: true })
    .filter((name) => /(?:\.rs|Cargo\.toml)$/.test(name))
    .map((name) => join('crates', name))
  const built = statSync(file).mtimeMs
  return [...sources, 'Cargo.toml', 'Cargo.lock', 'rust-toolchain.toml'].some(
    (name) => statSync(join(root, name)).mtimeMs > built,
  )
}

/**
 * Says what the release build's map tells of its intrinsics; ends this process where one is a function. Code that lacks
 * the target feature of an intrinsic cannot inline it: each use is a call, and a kernel becomes several times slower
 * than its scalar twin, with the same results.
 */
export function checkIntrinsics(map) {
  const unchecked = (why) => `intrinsics not checked: ${why}`
  if (map === undefined) return unchecked('the linker is asked for a map on Linux on x86-64 and arm64 only')
  if (!existsSync(map))
    return unchecked(`the build left no map at ${map}; after \`cargo clean\` the next one does`)
  const found = outlined(readFileSync(map, 'utf8'))
  if (found.functions === 0) return unchecked(`${map} names no functions of Rust`)
  if (found.outlined.length === 0) return `intrinsics checked: all inlined, in ${found.functions} functions`
  console.error('intrinsics are called, not inlined:')
  for (const name of found.outlined) console.error(`  ${name}`)
  console.error(
    'The code around each lacks its target feature: make the closure a loop, or mark the function',
  )
  console.error('inline(always) so that it becomes part of a kernel that has the feature.')
  process.exit(1)
}
