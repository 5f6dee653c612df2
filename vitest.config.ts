import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Worker threads of the runner's own would share the native library's process-wide state between test files.
    pool: 'forks',
    // Tests of delays and of memory must not compete with each other for the processor.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    server: { deps: { external: [/\/dist\//] } },
    alias: { 'aquila-xmc': fileURLToPath(new URL('./dist/index.js', import.meta.url)) },
  },
})
