// To be run after a change of dependencies: `npm install && node scripts/complete-lockfile.mjs`.
// npm leaves out of the lockfile what the registry at hand does not hold for foreign platforms, and then `npm ci`
// refuses the file. This adds those packages by the version that their parents name, and drops registry addresses.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './lib/run.mjs'

const file = join(root, 'package-lock.json')
const systems = [
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
]
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

const lock = JSON.parse(readFileSync(file, 'utf8'))
const packages = { ...lock.packages }
for (const [path, parent] of Object.entries(lock.packages)) {
  delete parent.resolved
  for (const [name, range] of Object.entries(parent.optionalDependencies ?? {})) {
    if (`node_modules/${name}` in packages || `${path}/node_modules/${name}` in packages) continue
    const words = name.split('/').at(-1).split('-')
    const libc = words.find((word) => /^(gnu|musl)/.test(word))
    packages[`node_modules/${name}`] = {
      version: range.replace(/^[\^~]/, ''),
      cpu: words.filter((word) => processors.includes(word)),
      dev: true,
      ...(libc && words.includes('linux') && { libc: [libc.startsWith('gnu') ? 'glibc' : 'musl'] }),
      license: parent.license,
      optional: true,
      ...(systems.some((system) => words.includes(system)) && {
        os: words.filter((word) => systems.includes(word)),
      }),
      engines: parent.engines,
    }
  }
}
const sorted = Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, 'en'))
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`)
