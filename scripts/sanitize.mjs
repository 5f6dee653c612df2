// `npm run sanitize`: the tests of the kernels, scalar and vector forms, under AddressSanitizer.
import { nightly, wantsNightly } from './lib/nightly.mjs'
import { run } from './lib/run.mjs'

const target = nightly()
if (!target) {
  console.log(`sanitizing skipped: ${wantsNightly}`)
  process.exit(0)
}
const env = {
  ...process.env,
  RUSTUP_TOOLCHAIN: 'nightly',
  RUSTFLAGS: '-Zsanitizer=address',
  // Optimised fully, instrumented kernels take minutes to compile.
  CARGO_PROFILE_DEV_OPT_LEVEL: '1',
  CARGO_TARGET_DIR: 'target/sanitize',
}
run('cargo', ['test', '--quiet', '--package', 'aquila', '--lib', '--target', target, 'kernels::'], { env })
