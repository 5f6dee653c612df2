// `npm run check`: formatting, lints, types, documentation and packaging, all with warnings as errors.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkIntrinsics, linkMap, outdated } from './lib/native.mjs'
import { bootstrap, root, run, tool } from './lib/run.mjs'

bootstrap()
// Types and the package are checked as built.
if (!existsSync(join(root, 'dist/index.js'))) run(process.execPath, ['scripts/build.mjs'])

const rustdoc = { env: { ...process.env, RUSTDOCFLAGS: '-D warnings' } }
run('cargo', ['fmt', '--all', '--check'])
run('cargo', ['clippy', '--workspace', '--all-targets', '--', '-D', 'warnings'])
// Other platforms of the package cannot be built or tested here, but their code is checked where Rust knows them.
const asked = (...args) => run('rustc', args, { stdio: 'pipe', encoding: 'utf8' }).stdout.trim()
const host = /^host: (.*)$/m.exec(asked('-vV'))[1]
const { targets } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).napi
const others = targets.filter((target) => target !== host)
const known = others.filter((target) => existsSync(asked('--print', 'target-libdir', '--target', target)))
for (const target of known)
  run('cargo', ['clippy', '--workspace', '--target', target, '--', '-D', 'warnings'])
run('cargo', ['doc', '--workspace', '--no-deps'], rustdoc)
// What the compiler made of the kernels shows in a release build of these sources alone.
const map = linkMap(host)
if (map && outdated(map)) run(process.execPath, ['scripts/build.mjs'])
const intrinsics = checkIntrinsics(map)
run(tool('biome'), ['ci', '--colors=off', '.'])
run(tool('tsc'), ['--noEmit'])
run(tool('publint'), ['--strict'])
run(tool('typedoc'), ['--emit', 'none'])
console.log(intrinsics)
console.log(`also checked for: ${known.join(', ') || 'no other platform'}`)
const unknown = others.filter((target) => !known.includes(target))
if (unknown.length > 0)
  console.log(`not checked, for want of a standard library (rustup target add …): ${unknown.join(', ')}`)
console.log('all checks hold')
