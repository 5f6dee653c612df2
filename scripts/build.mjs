// Builds everything: the native library, the option types that come from its tables, the facade.
// `--debug` builds the library with debug symbols and without link-time optimisation; `--native-only` stops after the
// library, for platforms that this machine cannot run; other arguments go to `napi build`, as `--target …` does.
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bootstrap, root, run, tool } from './lib/run.mjs'

bootstrap()
const given = process.argv.slice(2)
const debug = given.includes('--debug')
const args = ['build', '--platform', '--manifest-path', 'crates/aquila-node/Cargo.toml']
args.push('--output-dir', 'ts/native', '--js', 'binding.cjs', '--dts', 'binding.d.cts', '--no-const-enum')
args.push(...given.filter((arg) => arg !== '--debug' && arg !== '--native-only'))
run(tool('napi'), debug ? args : [...args, '--release'])
if (given.includes('--native-only')) process.exit(0)
run(process.execPath, ['scripts/generate-options.mjs'])
// What no source makes any more must not be packed.
rmSync(join(root, 'dist'), { recursive: true, force: true })
run(tool('tsc'), ['--project', 'tsconfig.build.json'], { cwd: root })
// The facade's declarations name the loader's types.
cpSync(join(root, 'ts/native/binding.d.cts'), join(root, 'dist/native/binding.d.cts'))
