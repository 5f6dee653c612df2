// Labels under several leaves, as users meet them.

import { join } from 'node:path'
import { LabelTree, type Progress, trainParameters, writeNpz, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { cli, expectError, folder, problem } from './helpers.js'

const { x, y } = problem()
const overlap = { copies: 2, leafCap: 4, minScore: 0 }
const options = { tree: { maxLeaf: 4 }, overlap }

describe('overlap', () => {
  it('hangs labels under further leaves, tells how many, and predicts each label once', async () => {
    const seen: Progress[] = []
    const model = await XLinear.train(x, y, options, { onProgress: (p) => seen.push({ ...p }) })
    const { slots, several, labels, params } = model.info
    expect(several).toBeGreaterThan(0)
    expect(slots).toBe(labels + several)
    expect(params['overlap.merge']).toBe('all')
    expect(model.report?.seconds.overlap).toBeGreaterThan(0)
    for (const { done, total } of seen) expect(done).toBeLessThanOrEqual(total)
    expect(seen.at(-1)?.done).toBe(seen.at(-1)?.total)
    const top = await model.predict(x, { k: 10 })
    for (let i = 0; i < top.rows; i++) expect(new Set(top.row(i).labels).size).toBe(top.row(i).labels.length)
    const again = await XLinear.train(x, y, { labelTree: LabelTree.fromJson(model.tree().toJson()) })
    expect(again.info.several).toBe(several)
  })

  it('is off by default, to the byte', async () => {
    const [plain, one] = await Promise.all([
      XLinear.train(x, y, { tree: { maxLeaf: 4 } }),
      XLinear.train(x, y, { tree: { maxLeaf: 4 }, overlap: { copies: 1 } }),
    ])
    const [a, b] = await Promise.all([plain.predict(x), one.predict(x)])
    expect(a.labels).toEqual(b.labels)
    expect(a.scores).toEqual(b.scores)
    expect([plain.info, plain.report?.seconds.overlap !== undefined]).toEqual([one.info, true])
    expect(plain.info.several).toBe(0)
  })

  it('refuses what makes no sense, with a code and a name', async () => {
    expect(() => trainParameters({ overlap: { copies: 0 } })).toThrow(/overlap\.copies but received 0/)
    await expectError(() => XLinear.train(x, y, { overlap: { copies: 1.5 } }), 'INVALID_ARGUMENT', /copies/)
    await expectError(
      () => XLinear.train(x, y, { overlap: { merge: 'mean' as never } }),
      'INVALID_ARGUMENT',
      /all, average, max, sum/,
    )
    await expectError(
      () => XLinear.train(x, y, { overlap: { copy: 2 } as never }),
      'UNKNOWN_OPTION',
      /overlap\.copies/,
    )
    expect(() => LabelTree.fromJson('{ "aquilaTree": 1, "labels": 2, "root": [[0, 0], [1]] }')).toThrow(
      /twice/,
    )
    expect(() => LabelTree.fromJson('{ "aquilaTree": 1, "labels": 3, "root": [[0, 1], [1]] }')).toThrow(
      /label 2 has no slot/,
    )
  })

  it('is set and shown by the command line', async () => {
    const dir = folder()
    const [xs, ys, out] = ['x.npz', 'y.npz', 'm.aquila'].map((name) => join(dir, name)) as [
      string,
      string,
      string,
    ]
    await Promise.all([writeNpz(xs, x), writeNpz(ys, y)])
    const sets = ['tree.maxLeaf=4', 'overlap.copies=2', 'overlap.leafCap=4', 'overlap.minScore=0']
    const set = sets.flatMap((value) => ['--set', value])
    const trained = await cli('train', '--x', xs, '--y', ys, '--out', out, ...set)
    expect([trained.code, trained.stderr]).toEqual([0, expect.stringMatching(/overlap: done/)])
    expect((await cli('inspect', out)).stdout).toMatch(/^labels +40 in \d+ slots, \d+ in several leaves/m)
  })
})
