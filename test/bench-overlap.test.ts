// The experiments on labels under several leaves: what they are made of, and the command itself.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Csr, eagle, Groups, writeNpz, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { fuse, fused, labelsOf, MODES, vectorsOf } from '../bench/lib/fused.mjs'
import {
  clones,
  dealt,
  draw,
  leavesOf,
  SHAPE,
  separated,
  topicsOf,
  variationOfInformation,
} from '../bench/lib/homonyms.mjs'
import { markdown, pictures } from '../bench/lib/overlap-report.mjs'
import { stream } from '../bench/lib/random.mjs'
import { expectWellFormed, folder, problem, root, rowsOf, start } from './helpers.js'

const library = { Csr, XLinear }

const count = (items: Iterable<number>) => {
  const counts = new Map<number, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}

describe('fused labels', () => {
  // 1,024 labels, four of each of 256 kinds; a row for each label.
  const labels = Array.from({ length: 1024 }, (_, i) => i)
  const kind = (label: number) => label % 256
  const each = labelsOf(
    Csr,
    labels.map((label) => [label]),
    1024,
  )
  const x = labelsOf(
    Csr,
    labels.map((label) => [kind(label) >> 5, 8 + kind(label)]),
    264,
  )
  const call = { threads: 1, seed: 0 }

  it.each([2, 4])('are %i each, as unlike as the mode says', async (k) => {
    const vectors = await vectorsOf({ Groups, eagle }, x, each, call)
    expect([vectors.rows, vectors.cols]).toEqual([1024, 264])
    const alike: [number, number][] = []
    for (const mode of MODES) {
      const to: Uint32Array = await fuse(library, vectors, mode, k, stream(1), call)
      const sizes = [...count(to).values()]
      expect(sizes).toEqual(Array(1024 / k).fill(k))
      expect(await fuse(library, vectors, mode, k, stream(1), call)).toEqual(to)
      const share = (of: (label: number) => number) => {
        const groups = new Map<number, Set<number>>()
        for (const [label, one] of to.entries())
          groups.set(one, (groups.get(one) ?? new Set()).add(of(label)))
        return [...groups.values()].filter((own) => own.size === 1).length / groups.size
      }
      alike.push([share(kind), share((label) => kind(label) >> 5)])
    }
    // Clusters of k are of one kind, as far as k-means finds them, those of 32 k of one family, and all labels of eight.
    const near = (share: number) => (Math.abs(share) < 0.25 ? 'few' : share > 0.5 ? 'most' : share)
    expect(alike.map((shares) => shares.map(near))).toEqual([
      ['most', 'most'],
      ['few', 'most'],
      ['few', 'few'],
    ])
    const harder = fuse(library, vectors, 'harder', k, stream(1), call)
    await expect(harder).rejects.toThrow(/easy, medium, hard but received harder/)
  })

  it('are on a row once, and zeros are none', () => {
    const y = Csr.from({
      rows: 3,
      cols: 4,
      indptr: Uint32Array.of(0, 3, 3, 5),
      indices: Uint32Array.of(0, 1, 3, 0, 2),
      values: Float32Array.of(1, 2, 1, 0, 1),
    })
    const f = fused(Csr, y, Uint32Array.of(1, 1, 0, 0))
    expect([f.rows, f.cols]).toEqual([3, 2])
    expect(rowsOf(f).map((row) => row.map(([label]) => label))).toEqual([[0, 1], [], [0]])
  })
})

describe('homonyms', () => {
  const shape = { topics: 4, single: 2, homonyms: 3, meanings: 2 }
  // Labels 0 to 7 are of topics 0, 0, 1, 1, 2, 2, 3, 3; homonyms are 8, 9, 10.
  const meant = [
    [0, 1],
    [2, 3],
    [0, 3],
  ]

  it('have rows in each of their topics, and only there', () => {
    const next = stream(3)
    const drawn = draw(Csr, SHAPE, topicsOf(SHAPE, next), 6000, next)
    const topics: number[][] = topicsOf(SHAPE, stream(3))
    const seen = topics.map(() => new Set<number>())
    rowsOf(drawn.y).forEach((row, i) => {
      for (const [label] of row) {
        const topic = drawn.topicOf[i]
        if (label < SHAPE.topics * SHAPE.single) expect(Math.floor(label / SHAPE.single)).toBe(topic)
        else seen[label - SHAPE.topics * SHAPE.single]?.add(topic)
      }
    })
    seen.forEach((found, h) => {
      for (const topic of found) expect(topics[h]).toContain(topic)
    })
    expect(seen.filter((found) => found.size === SHAPE.meanings).length).toBeGreaterThan(500)
  })

  it('are separated where they have leaves of all topics', () => {
    // The first in both topics; the second in one; the third in two leaves of topic 0.
    const tree = [
      [
        [0, 8, 10],
        [1, 10],
      ],
      [2, 3, 8],
      [4, 5, 9],
      [6, 7],
    ]
    expect(separated(tree, shape, meant)).toBe(1)
    expect(leavesOf(tree).length).toBe(5)
    // Leaves and nodes under one node; labels under the root are in no leaf, unless it is the only one.
    const deep = [1, [2, 3], [[4], 5]]
    expect(leavesOf(deep)).toEqual([[2, 3], [[4], 5], [4]])
    expect(leavesOf([1, 2])).toEqual([[1, 2]])
    expect(separated([...tree, 9], shape, meant)).toBe(1)
  })

  it('become labels by slot, and slots are dealt at random', () => {
    const tree = [
      [0, 2],
      [[1], 2],
    ]
    expect(clones(tree)).toEqual({
      root: [
        [0, 1],
        [[2], 3],
      ],
      was: [0, 2, 1, 2],
    })
    const more = dealt(tree, 3, 3, stream(0))
    expect(
      leavesOf(more)
        .flat()
        .filter((l: unknown) => !Array.isArray(l)).length,
    ).toBe(7)
    for (const leaf of leavesOf(more)) expect(new Set(leaf).size).toBe(leaf.length)
    expect(tree).toEqual([
      [0, 2],
      [[1], 2],
    ])
  })

  it('are told apart by the variation of information', () => {
    const of = (pairs: number[][]) => variationOfInformation(pairs)
    expect(
      of([
        [0, 5],
        [0, 5],
        [1, 7],
      ]),
    ).toBeCloseTo(0)
    // Two meanings in one leaf, one meaning in two leaves, two coins.
    expect(
      of([
        [0, 5],
        [1, 5],
      ]),
    ).toBeCloseTo(1)
    expect(
      of([
        [0, 5],
        [0, 6],
      ]),
    ).toBeCloseTo(1)
    expect(
      of([
        [0, 5],
        [0, 6],
        [1, 5],
        [1, 6],
      ]),
    ).toBeCloseTo(2)
    expect(
      of([
        [0, 5],
        [0, 5],
        [0, 5],
        [1, 5],
      ]),
    ).toBeCloseTo(0.8113, 4)
  })
})

describe('the report', () => {
  const run = (seed: number, variant: string, p5: number, more = {}) => ({
    seed,
    variant,
    precision: [60, 50, p5],
    seconds: p5,
    msPerRow: 0.01,
    slots: 10,
    largestLeaf: 4,
    several: 0,
    bytes: 1e6,
    ...more,
  })
  const results = {
    date: '2030-01-02',
    command: 'node bench/overlap.mjs --features DIR',
    commit: { hash: '0123456789abcdef', dirty: false },
    machine: { cpu: 'C', cores: 2, memoryBytes: 2 ** 34, system: 'linux' },
    versions: { aquila: '0.1.0', simd: 'avx2', node: '20.0.0', rust: 'rustc 1.90.0 (abc)' },
    options: { seeds: 2, fusedSeeds: 1, threads: 2 },
    sets: [
      {
        name: 'a<b',
        rows: 10,
        testRows: 5,
        features: 3,
        labels: 600,
        copies: [
          run(0, '1', 40),
          run(0, '2', 41),
          run(0, '2, at random', 39),
          run(1, '1', 42),
          run(1, '2', 44),
          run(1, '2, at random', 41),
        ],
        fused: [2, 4].map((k) => ({
          seed: 0,
          mode: 'hard',
          k,
          labels: 300,
          without: run(0, '', 40),
          with: run(0, '', 42),
        })),
      },
    ],
    homonyms: [{ ...SHAPE, labels: 1800, runs: [run(0, '1', 30, { separated: 0, variation: 0.9 })] }],
  }

  it('gives gains of the same seed, and costs beyond 1', () => {
    const text = markdown(results, 'base', [''])
    // Gains of 1 and 2 points; 42.5 seconds against 41.
    expect(text).toMatch(/^\| 2 .*\| 42\.50 \|.*\+1\.50 ± 0\.71 \|.*\+0\.04× \| +\+0\.00× \|/m)
    expect(text).toMatch(/^\| 2, at random .*−1\.00 ± 0\.00/m)
    expect(text).toMatch(/^\| hard, 4 +\| +300 \|.*\| +\+5\.00 % \|$/m)
    expect(text).toMatch(/^\| 1 .*0 of 600 \| +0\.900 \|/m)
    expect(text).toContain('](base.svg)')
    expect(text).not.toMatch(/NaN|undefined|Infinity/)
  })

  it('draws what was measured', () => {
    const drawn = pictures(results)
    expect(Object.keys(drawn)).toEqual(['', '-fused'])
    for (const svg of Object.values(drawn) as string[]) {
      expectWellFormed(svg)
      expect(svg).not.toMatch(/NaN|undefined|Infinity/)
    }
    expect(drawn['-fused']).toContain('hard, 4: 5')
    expect(Object.keys(pictures({ ...results, sets: [] }))).toEqual([])
  })
})

describe('the command', () => {
  const dir = folder()
  const command = (...args: string[]) => start([join(root, 'bench/overlap.mjs'), ...args]).ended

  it('measures real, fused and generated labels', async () => {
    const { x, y } = problem()
    const test = problem({ rows: 100, seed: 2 })
    const parts = { 'X.trn': x, 'Y.trn': y, 'X.tst': test.x, 'Y.tst': test.y }
    for (const [part, matrix] of Object.entries(parts)) await writeNpz(join(dir, `tiny.${part}.npz`), matrix)
    const run = await command(
      '--features',
      dir,
      '--sets',
      'tiny',
      '--seeds',
      '1',
      '--copies',
      '2',
      '--out',
      dir,
    )
    expect([run.code, run.stderr]).toEqual([0, ''])
    const names = readdirSync(dir).filter((name) => name.includes('overlap'))
    expect(names.sort().map((name) => name.replace(/^\d{4}-\d\d-\d\d/, ''))).toEqual([
      '-overlap-fused.svg',
      '-overlap.json',
      '-overlap.md',
      '-overlap.svg',
    ])
    const text = readFileSync(join(dir, names[1] as string), 'utf8')
    expect(text).not.toContain(dir)
    const { sets, homonyms } = JSON.parse(text)
    const [{ copies, fused }] = sets
    const two = ['2', '2, none at the root', '2, no update', '2, at random']
    const variants = ['1', ...two, 'paper, 1', 'paper, 2', 'paper, 2, no update']
    expect(copies.map(({ variant }: { variant: string }) => variant)).toEqual(variants)
    expect(copies[4].slots).toBe(copies[2].slots)
    for (const { slots, largestLeaf } of copies) expect(largestLeaf > 1 && largestLeaf <= slots).toBe(true)
    expect(fused.length).toBe(9)
    const [{ runs }, { meanings }] = homonyms
    expect(meanings).toBe(3)
    const of = (variant: string) => runs.find((one: { variant: string }) => one.variant === variant)
    expect([of('1').separated, of('1').slots]).toEqual([0, 1800])
    // What overlap is for: it finds the meanings that were put in, and chance does not.
    expect(of('2').separated).toBeGreaterThan(10 * of('2, at random').separated)
    expect(of('2').precision[0]).toBeGreaterThan(of('2, at random').precision[0])
    expect(of('2').variation).toBeLessThan(of('2, at random').variation)
  }, 120_000)

  it.each([
    [[], /--features/],
    [['--features', join(dir, 'none')], /no such folder/],
    [['--parts', 'some'], /parts of copies, fused, homonyms but received some/],
    [['--features', dir, '--sets', 'other'], /received other/],
    [['--parts', 'homonyms', '--copies', '1'], /at least 2 for --copies/],
    [['--parts', 'homonyms', '--seeds', '0'], /--seeds/],
  ] as [string[], RegExp][])('%j is one clear line', async (args, message) => {
    const { code, stderr } = await command(...args)
    expect([code, stderr.trim().split('\n').length]).toEqual([1, 1])
    expect(stderr).toMatch(message)
  })
})
