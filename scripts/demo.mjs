// `npm run demo`: sets a bare clone up, builds what is missing, then runs the demonstration.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bootstrap, root, run } from './lib/run.mjs'

bootstrap()
if (!existsSync(join(root, 'dist/index.js')) || !existsSync(join(root, 'ts/native/binding.cjs')))
  run(process.execPath, ['scripts/build.mjs'])
run(process.execPath, ['examples/demo.mjs', ...process.argv.slice(2)])
