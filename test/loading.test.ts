// How the package is loaded, and what it says where its native library cannot be.

import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { folder, root, start } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)
const SUPPORTED =
  'Supported are linux x64 glibc, linux x64 musl, linux arm64 glibc, linux arm64 musl, darwin x64, darwin arm64, win32 x64; to build it from source, run npm run build in a clone'

/** Runs a module that loads the package and prints what comes of it. */
async function load(
  specifier: string,
  before = '',
): Promise<{ code?: string; message?: string; cause?: string; loaded?: string }> {
  const code = `${before}
    const tell = (found) => console.log(JSON.stringify(found))
    await import(${JSON.stringify(specifier)}).then(
      ({ XLinear }) => tell({ loaded: typeof XLinear }),
      ({ name, code, message, cause }) => tell({ name, code, message, cause: cause?.message }),
    )`
  const { stdout, stderr } = await start(['--input-type=module', '--eval', code]).ended
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

beforeAll(() => {
  mkdirSync(place('node_modules'))
  symlinkSync(root, place('node_modules/aquila-xmc'), 'junction')
})

describe('a platform without a native library', () => {
  const built = pathToFileURL(join(root, 'dist/index.js')).href

  it.each([
    ['sunos', 'x64', 'sunos x64'],
    ['win32', 'arm64', 'win32 arm64'],
    ['linux', 's390x', process.platform === 'linux' ? /linux s390x (glibc|musl)/ : /linux s390x/],
  ])('%s %s is named, with those that are supported and the cure', async (platform, arch, named) => {
    const fake = `Object.defineProperties(process, { platform: { value: '${platform}' }, arch: { value: '${arch}' } })`
    const found = await load(built, fake)
    expect(found).toMatchObject({ name: 'AquilaError', code: 'UNSUPPORTED_PLATFORM' })
    expect(found.message).toMatch(named)
    expect(found.message).toMatch(
      /^aquila-xmc has no native library on [^:]+: there is none for this platform\. /,
    )
    expect(found.message).toContain(SUPPORTED)
    expect(found.cause).toBeDefined()
  })

  /** The package as it is installed, without any library. */
  function bare(name: string): string {
    for (const part of ['dist', 'package.json', 'ts/native/binding.cjs'])
      cpSync(join(root, part), join(dir, name, part), { recursive: true })
    return pathToFileURL(join(dir, name, 'dist/index.js')).href
  }

  it('is told from one whose package was not installed', async () => {
    const found = await load(bare('bare'))
    expect(found.code).toBe('UNSUPPORTED_PLATFORM')
    expect(found.message).toContain(`on ${process.platform} ${process.arch}`)
    expect(found.message).toMatch(
      /: the package that holds it is not installed \(was it left out by --omit=optional/,
    )
    expect(found.message).toContain(SUPPORTED)
  })

  it('is one line of the command line', async () => {
    bare('command')
    mkdirSync(place('command/node_modules'))
    symlinkSync(join(root, 'node_modules/commander'), place('command/node_modules/commander'), 'junction')
    const { code, stdout, stderr } = await start([
      place('command/dist/cli/main.js'),
      'inspect',
      'm',
      '--json',
    ]).ended
    const { error } = JSON.parse(stdout)
    expect([code, error.code, stderr]).toEqual([1, 'UNSUPPORTED_PLATFORM', `aquila: ${error.message}\n`])
  })

  it.runIf(process.platform === 'linux' && process.arch === 'x64')(
    'is told from a library that does not load',
    async () => {
      const broken = bare('broken')
      for (const libc of ['gnu', 'musl'])
        writeFileSync(place(`broken/ts/native/aquila.linux-x64-${libc}.node`), 'no library')
      const found = await load(broken)
      expect(found.code).toBe('UNSUPPORTED_PLATFORM')
      expect(found.message).toMatch(/: the system refused to load it \(.*aquila\.linux-x64-\w+\.node: /)
    },
  )
})

describe('a bundle', () => {
  const entry = () => {
    writeFileSync(place('entry.mjs'), "import { XLinear } from 'aquila-xmc'\nexport { XLinear }\n")
    return place('entry.mjs')
  }
  const cure = /^aquila-xmc was bundled, .*mark aquila-xmc as external \(esbuild: --external:aquila-xmc\)/

  /** Runs a bundle; its error's code and message. */
  async function run(path: string): Promise<{ code?: string; message?: string; loaded?: string }> {
    return load(pathToFileURL(path).href)
  }

  // Vitest brings this bundler.
  it.each(['esm', 'cjs'] as const)('of rolldown (%s) names the cure, and works with it', async (format) => {
    const { rolldown } = createRequire(createRequire(import.meta.url).resolve('vitest/package.json'))(
      'rolldown',
    )
    const bundle = async (file: string, external: string[]) => {
      const made = await rolldown({
        input: entry(),
        platform: 'node',
        external,
        logLevel: 'silent',
        cwd: dir,
      })
      await made.write({ file: place(file), format })
    }
    const end = format === 'esm' ? 'mjs' : 'cjs'
    await bundle(`all.${end}`, [])
    expect(await run(place(`all.${end}`))).toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringMatching(cure),
    })
    await bundle(`right.${end}`, ['aquila-xmc'])
    expect(await run(place(`right.${end}`))).toEqual({ loaded: 'function' })
  })

  const esbuild = join(root, 'node_modules/esbuild/lib/main.js')
  it.runIf(existsSync(esbuild)).each(['esm', 'cjs'] as const)(
    `of esbuild (%s) names the cure, and works with it${existsSync(esbuild) ? '' : ' (skipped: esbuild is not installed)'}`,
    async (format) => {
      const { build } = createRequire(import.meta.url)(esbuild)
      const end = format === 'esm' ? 'mjs' : 'cjs'
      const bundle = (file: string, external: string[]) =>
        build({
          entryPoints: [entry()],
          outfile: place(file),
          bundle: true,
          platform: 'node',
          format,
          external,
          logLevel: 'silent',
        })
      await bundle(`es.${end}`, [])
      expect(await run(place(`es.${end}`))).toMatchObject({
        code: 'UNSUPPORTED',
        message: expect.stringMatching(cure),
      })
      await bundle(`es-right.${end}`, ['aquila-xmc'])
      expect(await run(place(`es-right.${end}`))).toEqual({ loaded: 'function' })
    },
  )
})

describe('CommonJS', () => {
  it('gets the same library by require', async () => {
    writeFileSync(
      place('use.cjs'),
      `const aquila = require('aquila-xmc')
      const x = aquila.Csr.fromRows([[[0, 1]], [[1, 1]]], 2)
      import('aquila-xmc').then(async (same) => {
        const model = await aquila.XLinear.train(x, x)
        console.log(model.predictOne(x.row(1), { k: 1 }).labels[0], same.XLinear === aquila.XLinear)
      })`,
    )
    const { code, stdout } = await start(['use.cjs'], { cwd: dir }).ended
    expect([code, stdout]).toEqual([0, '1 true\n'])
  })
})

describe('types', () => {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')

  it('hold for modules of both kinds, and with the types of Node alone', async () => {
    writeFileSync(
      place('use.cts'),
      "import aquila = require('aquila-xmc')\nexport const open: typeof aquila.XLinear.open = aquila.XLinear.open\n",
    )
    writeFileSync(
      place('use.mts'),
      "import { Csr } from 'aquila-xmc'\nusing x = Csr.fromRows([new Map([[0, 1]]), { indices: [0], values: [1] }], 1)\nexport const rows: number = x.rows\n",
    )
    mkdirSync(place('node_modules/@types'), { recursive: true })
    for (const name of ['@types/node', 'undici-types'])
      symlinkSync(join(root, 'node_modules', name), place(`node_modules/${name}`), 'junction')
    const flags = [
      '--noEmit',
      '--strict',
      '--target',
      'es2022',
      '--types',
      'node',
      '--module',
      'nodenext',
      '--ignoreConfig',
    ]
    for (const lib of ['es2022', 'es2023,esnext.disposable']) {
      const { code, stdout } = await start([tsc, ...flags, '--lib', lib, 'use.cts', 'use.mts'], { cwd: dir })
        .ended
      expect([lib, code, stdout]).toEqual([lib, 0, ''])
    }
  })
})
