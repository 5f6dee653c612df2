// Builds everything: the native library, the option types that come from its tables, the facade.
// `--debug` builds the library with debug symbols and without link-time optimisation.
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bootstrap, root, run, tool } from './lib/run.mjs'

bootstrap()
const debug = process.argv.includes('--debug')
const args = ['build', '--platform', '--manifest-path', 'crates/aquila-node/Cargo.toml']
args.push('--output-dir', 'ts/native', '--js', 'binding.cjs', '--dts', 'binding.d.cts', '--no-const-enum')
run(tool('napi'), debug ? args : [...args, '--release'])
run(process.execPath, ['scripts/generate-options.mjs'])
// What no source makes any more must not be packed.
rmSync(join(root, 'dist'), { recursive: true, force: true })
run(tool('tsc'), ['--project', 'tsconfig.build.json'], { cwd: root })
// The facade's declarations name the loader's types.
cpSync(join(root, 'ts/native/binding.d.cts'), join(root, 'dist/native/binding.d.cts'))
