import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { folder, root } from './helpers.js'

const dir = folder()

/** Runs a program and returns what it prints. */
const run = (program: string, args: string[], cwd = dir) =>
  execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

it('installs from its tarballs in an empty folder, without network or scripts, and works', () => {
  const tarballs: string[] = JSON.parse(run('node', [join(root, 'scripts/pack.mjs'), dir], root))
  expect(tarballs.length).toBe(2)
  // The one dependency comes from the installed tree, for the network must not be needed.
  const [{ filename }] = JSON.parse(
    run(
      'npm',
      ['pack', '--json', '--ignore-scripts', '--pack-destination', dir],
      join(root, 'node_modules/commander'),
    ),
  )

  writeFileSync(join(dir, 'package.json'), '{ "name": "fresh", "private": true, "type": "module" }')
  run('npm', [
    'install',
    '--offline',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    ...tarballs,
    join(dir, filename),
  ])
  writeFileSync(
    join(dir, 'use.mjs'),
    `import { Csr, XLinear, AquilaError } from 'aquila-xmc'
    const eye = (values) => Csr.from({ rows: 3, cols: 3, indptr: new Uint32Array([0, 1, 2, 3]), indices: new Uint32Array([0, 1, 2]), values })
    const ones = eye(new Float32Array(3).fill(1))
    const model = await XLinear.train(ones, ones)
    await model.save('m.aquila')
    console.log((await model.predict(ones, { k: 1 })).labels.join(), typeof AquilaError)`,
  )
  expect(run('node', ['use.mjs']).trim()).toBe('0,1,2 function')
  // Services that are no ES modules yet get the same package.
  writeFileSync(join(dir, 'use.cjs'), "console.log(typeof require('aquila-xmc').XLinear.open)")
  expect(run('node', ['use.cjs']).trim()).toBe('function')
  expect(JSON.parse(run('npx', ['--offline', 'aquila', 'inspect', 'm.aquila', '--json'])).labels).toBe(3)

  // Its types hold for a user who checks libraries too.
  writeFileSync(
    join(dir, 'use.ts'),
    `import { type Ranked, XLinear, type TrainOptions } from 'aquila-xmc'
    const options: TrainOptions = { tree: { maxLeaf: 10 }, solver: { loss: 'hinge' } }
    export async function use(model: XLinear): Promise<Ranked> {
      // @ts-expect-error maxLeav is no option
      const wrong: TrainOptions = { tree: { maxLeav: 10 } }
      void options, wrong
      return model.predict(undefined as never, { k: 3 })
    }`,
  )
  const flags = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2023,esnext.disposable,dom']
  run('node', [join(root, 'node_modules/typescript/bin/tsc'), ...flags, '--module', 'nodenext', 'use.ts'])
})
