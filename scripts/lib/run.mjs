// What the scripts share: running programs of the project, and setting the project up in a bare clone.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

// npm is a script of its own on every platform; its path is known when npm itself runs us.
const npm = process.env.npm_execpath

/** Runs a program in the project's root; ends this process with the program's code when it fails. */
export function run(program, args, options = {}) {
  const result = spawnSync(program, args, {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32' && program === 'npm',
    ...options,
  })
  if (result.error) {
    console.error(`${program}: ${result.error.message}`)
    process.exit(1)
  }
  if (result.status !== 0) process.exit(result.status ?? 1)
  return result
}

/** Runs a program, shows what it prints and returns it with the exit code. */
export function capture(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: ['inherit', 'pipe', 'pipe'], ...options })
    let text = ''
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ])
      from.on('data', (chunk) => {
        text += chunk
        to.write(chunk)
      })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code: code ?? 1, text }))
  })
}

/** The JavaScript file behind a program of a development dependency. */
export function tool(name) {
  return join(root, 'node_modules', '.bin', name)
}

/** Installs the development dependencies where they are missing. */
export function bootstrap() {
  if (existsSync(join(root, 'node_modules', '.package-lock.json'))) return
  const args = ['ci', '--no-audit', '--no-fund']
  if (npm) run(process.execPath, [npm, ...args])
  else run('npm', args)
}
