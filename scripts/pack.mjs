// Packs the package and the platform package of this machine's build, as a release does for every platform:
// `node scripts/pack.mjs [folder]`, by default ./npm. Prints the two tarballs' names as JSON.
import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { bootstrap, root, run, tool } from './lib/run.mjs'

bootstrap()
const out = resolve(process.argv[2] ?? join(root, 'npm'))
// The platforms' folders must lie within the project.
const platforms = join(root, 'npm')
mkdirSync(out, { recursive: true })
mkdirSync(platforms, { recursive: true })
const quiet = { stdio: ['ignore', 'ignore', 'inherit'] }
run(tool('napi'), ['create-npm-dirs', '--npm-dir', 'npm'], quiet)

/** Packs a folder and gives the tarball's path. */
function pack(folder) {
  const { stdout } = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', out], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  })
  return join(out, JSON.parse(stdout)[0].filename)
}

const built = readdirSync(platforms).filter((name) => existsSync(join(root, `ts/native/aquila.${name}.node`)))
for (const name of built)
  copyFileSync(join(root, `ts/native/aquila.${name}.node`), join(platforms, name, `aquila.${name}.node`))
const tarballs = [pack(root), ...built.map((name) => pack(join(platforms, name)))]
console.log(JSON.stringify(tarballs))
