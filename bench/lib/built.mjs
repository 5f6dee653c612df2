// The package as it is built here.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bootstrap, root, run } from '../../scripts/lib/run.mjs'

/** The package; set up and built first where it is not. */
export async function built() {
  bootstrap()
  const entry = join(root, 'dist/index.js')
  if (!existsSync(entry)) run(process.execPath, [join(root, 'scripts/build.mjs')])
  return import(pathToFileURL(entry).href)
}
