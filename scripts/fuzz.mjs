// `npm run fuzz -- [target] [--seconds N]`: feeds the readers of foreign bytes with mutated files, under
// AddressSanitizer. `--smoke`: every target for a moment, as the check does; without a nightly tool-chain it is skipped.
//
// The targets have cargo-fuzz's layout, so `cargo +nightly fuzz run model` in crates/aquila works as well where cargo-fuzz is
// installed. This script needs the nightly tool-chain and a C++ compiler alone.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { nightly, wantsNightly } from './lib/nightly.mjs'
import { root, run } from './lib/run.mjs'

const seeds = {
  model: 'crates/aquila/tests/golden',
  text: 'crates/aquila/fuzz/seeds/text',
  arrays: 'crates/aquila/fuzz/seeds/arrays',
  tree: 'crates/aquila/fuzz/seeds/tree',
}

/** What cargo-fuzz passes to the compiler. */
const flags = [
  '-Cpasses=sancov-module',
  '-Cllvm-args=-sanitizer-coverage-level=4',
  '-Cllvm-args=-sanitizer-coverage-inline-8bit-counters',
  '-Cllvm-args=-sanitizer-coverage-pc-table',
  '-Cllvm-args=-sanitizer-coverage-trace-compares',
  '-Zsanitizer=address',
  '-Cdebug-assertions',
  '-Coverflow-checks',
  '--cfg=fuzzing',
]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string' }, smoke: { type: 'boolean', default: false } },
})
const wrong = positionals.find((name) => !(name in seeds))
if (wrong !== undefined) {
  console.error(`there is no fuzz target ${wrong}: known are ${Object.keys(seeds).join(', ')}`)
  process.exit(2)
}
const seconds = Number(values.seconds ?? (values.smoke ? 10 : 60))
if (!(seconds > 0)) {
  console.error(`--seconds ${values.seconds}: give a number above 0`)
  process.exit(2)
}

const target = nightly()
if (!target) {
  console.log(`fuzzing skipped: ${wantsNightly}`)
  process.exit(values.smoke ? 0 : 1)
}

const folder = join(root, 'crates/aquila/fuzz')
const env = { ...process.env, RUSTFLAGS: flags.join(' '), RUSTUP_TOOLCHAIN: 'nightly' }
run('cargo', ['build', '--release', '--locked', '--target', target], { cwd: folder, env })
for (const name of positionals.length > 0 ? positionals : Object.keys(seeds)) {
  const corpus = join(folder, 'corpus', name)
  mkdirSync(corpus, { recursive: true })
  mkdirSync(join(folder, 'artifacts', name), { recursive: true })
  run(join(folder, 'target', target, 'release', name), [
    corpus,
    join(root, seeds[name]),
    `-max_total_time=${seconds}`,
    `-artifact_prefix=${join(folder, 'artifacts', name)}/`,
    '-rss_limit_mb=4096',
    '-verbosity=0',
    '-print_final_stats=0',
  ])
  console.log(`fuzz target ${name}: ${seconds} s without a finding`)
}
