// Labels under several leaves, as users meet them.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LabelTree, type Progress, trainParameters, writeNpz, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { cli, expectError, folder, matrix, problem, rowsOf } from './helpers.js'

const { x, y } = problem()
const overlap = { copies: 2, leafCap: 4, minScore: 0 }
const options = { tree: { maxLeaf: 4 }, overlap }

/** Rows of two topics, fruit and phones, with a label `apple` in both. */
function homonym() {
  const topics = [
    {
      common: ['orchard', 'juice', 'harvest'],
      own: { apple: 'crisp', pear: 'green', cherry: 'stone', plum: 'jam' },
    },
    {
      common: ['screen', 'store', 'update'],
      own: { apple: 'keynote', nokia: 'ringtone', sony: 'camera', htc: 'android' },
    },
  ]
  const words = topics.flatMap(({ common, own }) => [...common, ...Object.values(own)])
  const labels = [...new Set(topics.flatMap(({ own }) => Object.keys(own)))]
  const texts = topics.flatMap(({ common, own }) =>
    Object.entries(own).flatMap(([label, special]) =>
      common.flatMap((word) => [[word, special], [word]].map((text) => ({ label, text }))),
    ),
  )
  const column = (word: string): [number, number] => [words.indexOf(word), 1]
  const x = matrix(
    texts.map(({ text }) => text.map(column)),
    words.length,
  )
  const y = matrix(
    texts.map(({ label }) => [[labels.indexOf(label), 1]]),
    labels.length,
  )
  // Where overlap itself would hang the label is not the matter here.
  const ids = (names: string[]) => names.map((name) => labels.indexOf(name))
  const root = topics.map(({ own }) => ids(Object.keys(own)))
  const labelTree = LabelTree.fromJson(JSON.stringify({ aquilaTree: 1, labels: labels.length, root }))
  return { x, y, words, labels, labelTree }
}

describe('meanings', () => {
  const { x, y, words, labels, labelTree } = homonym()
  const named = { labelTree, labelNames: labels, featureNames: words }

  it('are told by the words of each leaf', async () => {
    const model = await XLinear.train(x, y, named)
    const all = await model.meanings({ features: 1 })
    const seen = all.map(({ name, leaves }) => [
      name,
      ...leaves.map(({ layer, node, neighbours, features }) => [
        [layer, node],
        [...neighbours].map((label) => model.labelName(label)),
        features.map((f) => f.name),
      ]),
    ])
    expect(seen).toEqual([
      [
        'apple',
        [[1, 0], ['pear', 'cherry', 'plum'], ['crisp']],
        [[1, 1], ['nokia', 'sony', 'htc'], ['keynote']],
      ],
    ])
    const [told] = all[0]?.leaves[0]?.features ?? []
    expect([told?.feature, model.featureName(told?.feature ?? -1)]).toEqual([words.indexOf('crisp'), 'crisp'])
    expect(told?.lead).toBeGreaterThan(0)
    // With one feature in a row, the row's score in a leaf tells the weight: here it need only be positive.
    expect(told?.weight).toBeGreaterThan(0)
    expect(model.featureName(words.length)).toBeUndefined()
  })

  it('are there for any label, with or without names, and without features', async () => {
    const model = await XLinear.train(x, y, { labelTree })
    const [pear, apple, ...none] = await model.meanings({ labels: Uint32Array.of(1, 0), features: 2 })
    expect([none.length, pear?.label, pear?.leaves.length, apple?.leaves.length]).toEqual([0, 1, 1, 2])
    expect([pear && 'name' in pear, pear?.leaves[0]?.features[0]?.name]).toEqual([false, undefined])
    expect(pear?.leaves[0]?.features.map((f) => words[f.feature])).toContain('green')
    const [bare] = await model.meanings({ features: 0 })
    expect(bare?.leaves.map((l) => l.features)).toEqual([[], []])
    const plain = await XLinear.train(x, y)
    expect(await plain.meanings()).toEqual([])
  })

  it('are refused where they make no sense', async () => {
    const model = await XLinear.train(x, y, named)
    const ask = (options: object) => () => model.meanings(options)
    await expectError(ask({ labels: Uint32Array.of(7) }), 'INDEX_OUT_OF_RANGE', /label 7/)
    await expectError(ask({ labels: [0] }), 'INVALID_ARGUMENT', /labels/)
    await expectError(ask({ features: -1 }), 'INVALID_ARGUMENT', /features/)
    await expectError(ask({ top: 3 }), 'UNKNOWN_OPTION', /top/)
    await expectError(
      () => XLinear.train(x, y, { featureNames: ['one'] }),
      'SHAPE_MISMATCH',
      /1 feature name/,
    )
    await expectError(
      () => XLinear.train(x, y, { featureNames: [1] as never }),
      'INVALID_ARGUMENT',
      /featureNames\[0\]/,
    )
    const pending = model.meanings()
    model.close()
    expect((await pending).length).toBe(1)
    await expectError(() => model.meanings(), 'CLOSED')
    await expectError(() => model.featureName(0), 'CLOSED')
  })

  it('are shown by the command line', async () => {
    const dir = folder()
    const place = (name: string) => join(dir, name)
    await Promise.all([writeNpz(place('x.npz'), x), writeNpz(place('y.npz'), y)])
    writeFileSync(place('words.txt'), `${words.join('\n')}\n`)
    writeFileSync(place('labels.txt'), `${labels.join('\n')}\n`)
    writeFileSync(place('tree.json'), labelTree.toJson())
    const data = ['--x', place('x.npz'), '--y', place('y.npz'), '--tree', place('tree.json')]
    const names = ['--labels', place('labels.txt'), '--feature-names', place('words.txt')]
    const [m, bare] = [place('m.aquila'), place('bare.aquila')]
    expect((await cli('train', ...data, ...names, '--out', m)).code).toBe(0)
    expect((await cli('train', ...data, '--out', bare)).code).toBe(0)

    const told = [
      'apple, label 0: 2 leaves',
      '  leaf 0 of layer 1, beside pear and 2 more',
      expect.stringMatching(/^ {4}told by crisp \+\d\.\d\d$/),
      '  leaf 1 of layer 1, beside nokia and 2 more',
      expect.stringMatching(/^ {4}told by keynote \+\d\.\d\d$/),
      '',
    ]
    for (const which of [['--label', 'apple'], ['--label', '0'], ['--several']])
      expect((await cli('inspect', m, ...which, '--top', '1')).stdout.split('\n')).toEqual(told)
    const json = async (...args: string[]) => JSON.parse((await cli('inspect', ...args, '--json')).stdout)
    const whole = await json(m, '--several', '--top', '1')
    expect(whole.meanings).toMatchObject([
      { label: 0, name: 'apple', leaves: [{ neighbours: [1, 2, 3], features: [{ name: 'crisp' }] }, {}] },
    ])
    // Names of features may come from a file instead.
    const file = ['--feature-names', place('words.txt')]
    const given = await json(bare, '--label', '0', '--top', '1', ...file)
    expect(given.meanings[0].leaves[1].features[0].name).toBe('keynote')
    expect(await json(m)).toMatchObject({ featureNames: words.length, several: 1 })
    expect((await cli('inspect', m)).stdout).toMatch(/^features +\d+, named$/m)
    expect((await cli('inspect', bare, '--label', '1', '--top', '0')).stdout).toBe(
      'label 1: one leaf\n  leaf 0 of layer 1, beside 0 and 2 more\n',
    )
    for (const [args, message] of [
      [['--label', 'grape'], /name or number of a label for --label but received "grape"/],
      [['--label', '99'], /label 99/],
      [['--label', '0', '--several'], /either --label or --several/],
      [['--several', '--feature-names', place('labels.txt')], /7 feature names but the model has 14/],
    ] as const)
      expect(await cli('inspect', m, ...args)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(message),
      })
  })
})

describe('overlap', () => {
  it('places labels under further leaves, tells how many, and predicts each label once', async () => {
    const seen: Progress[] = []
    const model = await XLinear.train(x, y, options, { onProgress: (p) => seen.push({ ...p }) })
    const { slots, several, atRoot, labels, layers, params } = model.info
    expect(several).toBeGreaterThan(0)
    // As many of the most frequent labels under the root as it has nodes.
    expect(layers[0]).toBe(2 * atRoot)
    expect(slots).toBe(labels + several + atRoot)
    expect(params['overlap.merge']).toBe('all')
    expect(model.report?.seconds.overlap).toBeGreaterThan(0)
    for (const { done, total } of seen) expect(done).toBeLessThanOrEqual(total)
    expect(seen.at(-1)?.done).toBe(seen.at(-1)?.total)
    const top = await model.predict(x, { k: 10 })
    for (let i = 0; i < top.rows; i++) expect(new Set(top.row(i).labels).size).toBe(top.row(i).labels.length)
    const again = await XLinear.train(x, y, { labelTree: LabelTree.fromJson(model.tree().toJson()) })
    expect([again.info.several, again.info.atRoot]).toEqual([several, atRoot])
    const none = await XLinear.train(x, y, { ...options, overlap: { ...overlap, rootCap: 0 } })
    expect(none.info.atRoot).toBe(0)
  })

  it('is off by default, to the byte', async () => {
    const [plain, one] = await Promise.all([
      XLinear.train(x, y, { tree: { maxLeaf: 4 } }),
      XLinear.train(x, y, { tree: { maxLeaf: 4 }, overlap: { copies: 1 } }),
    ])
    const files = [join(folder(), 'plain.aquila'), join(folder(), 'one.aquila')] as const
    await Promise.all([plain.save(files[0]), one.save(files[1])])
    expect(readFileSync(files[0]).equals(readFileSync(files[1]))).toBe(true)
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

  it('bears what leaves no choice: more copies than leaves, a single leaf, labels without rows', async () => {
    const many = await XLinear.train(x, y, { tree: { maxLeaf: 4 }, overlap: { ...overlap, copies: 1000 } })
    const leaves = many.info.layers.at(-2) as number
    for (const { leaves: of } of await many.meanings({ features: 0 }))
      expect(of.length).toBeLessThanOrEqual(leaves)
    const single = await XLinear.train(x, y, { tree: { maxLeaf: 100 }, overlap: { copies: 2 } })
    expect([single.info.layers, single.info.several]).toEqual([[40], 0])
    const sparse = matrix(
      rowsOf(y).map((row) => row.filter(([label]) => label % 5 > 0)),
      40,
    )
    const model = await XLinear.train(x, sparse, options)
    const several = (await model.meanings({ features: 0 })).map(({ label }) => label)
    expect(several.length).toBeGreaterThan(0)
    for (const label of several) expect(label % 5).toBeGreaterThan(0)
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
    expect((await cli('inspect', out)).stdout).toMatch(
      /^labels +40 in \d+ slots, \d+ in several leaves, \d+ under the root as well$/m,
    )

    const root = Array.from({ length: 40 }, (_, label) => label)
    for (const [tree, message] of [
      [{ aquilaTree: 1, labels: 40, root: [root, [0, 0]] }, /label 0 is placed twice/],
      [{ aquilaTree: 1, labels: 40, root: [root.slice(1), [1]] }, /label 0 has no slot/],
    ] as const) {
      writeFileSync(join(dir, 'tree.json'), JSON.stringify(tree))
      const args = ['train', '--x', xs, '--y', ys, '--out', join(dir, 'no.aquila')]
      const refused = await cli(...args, '--tree', join(dir, 'tree.json'))
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(message) })
    }
    const none = await cli('train', '--x', xs, '--y', ys, '--out', out, '--set', 'overlap.copies=0')
    expect(none).toMatchObject({ code: 1, stderr: expect.stringMatching(/overlap\.copies but received 0/) })
  })
})
