// `npm run check`: formatting, lints, types, documentation and packaging, all with warnings as errors.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bootstrap, root, run, tool } from './lib/run.mjs'

bootstrap()
// Types and the package are checked as built.
if (!existsSync(join(root, 'dist/index.js'))) run(process.execPath, ['scripts/build.mjs'])

const rustdoc = { env: { ...process.env, RUSTDOCFLAGS: '-D warnings' } }
run('cargo', ['fmt', '--all', '--check'])
run('cargo', ['clippy', '--workspace', '--all-targets', '--', '-D', 'warnings'])
run('cargo', ['doc', '--workspace', '--no-deps'], rustdoc)
run(tool('biome'), ['ci', '--colors=off', '.'])
run(tool('tsc'), ['--noEmit'])
run(tool('publint'), ['--strict'])
run(tool('typedoc'), ['--emit', 'none'])
console.log('all checks hold')
