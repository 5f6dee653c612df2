import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { XLinear } from 'aquila-xmc'
import { expect, it } from 'vitest'
import { folder, problem, root } from './helpers.js'

const dir = folder()

it('shares one mapped model among 20 workers that come and go', async () => {
  const { x, y } = problem()
  const path = join(realpathSync(dir), 'm.aquila')
  await (await XLinear.train(x, y, { tree: { maxLeaf: 8 } })).save(path)
  const model = await XLinear.open(path)
  const expected = await model.predict(x, { k: 3 })
  const workerData = { path, x: { rows: x.rows, cols: x.cols, ...x.toArrays() } }

  for (let round = 0; round < 4; round++) {
    const workers = Array.from(
      { length: 5 },
      () => new Worker(join(root, 'test/fixtures/worker.mjs'), { workerData }),
    )
    const answers = await Promise.all(
      workers.map(
        (worker) =>
          new Promise<{ labels: Uint32Array; one: Uint32Array }>((resolve, reject) => {
            worker.once('message', resolve)
            worker.once('error', reject)
          }),
      ),
    )
    for (const { labels, one } of answers) {
      expect(labels).toEqual(expected.labels)
      expect(one).toEqual(expected.row(0).labels)
    }
    // Five workers and this thread hold the model, which is mapped once.
    if (existsSync('/proc/self/maps'))
      expect(
        readFileSync('/proc/self/maps', 'utf8')
          .split('\n')
          .filter((line) => line.endsWith(path)).length,
      ).toBe(1)
    // Each is in the midst of a prediction.
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
  expect((await model.predict(x, { k: 3 })).labels).toEqual(expected.labels)
})
