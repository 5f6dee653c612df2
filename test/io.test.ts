import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  Dense,
  Features,
  readLibsvm,
  readNpy,
  readNpz,
  readXmc,
  writeLibsvm,
  writeNpy,
  writeNpz,
  writeXmc,
} from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, folder, matrix, problem } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)

describe('files', () => {
  it('round trips through .npz, packed and plain', async () => {
    const { x } = problem({ rows: 50 })
    for (const compressed of [true, false]) {
      await writeNpz(place('x.npz'), x, { compressed })
      expect((await readNpz(pathToFileURL(place('x.npz')))).toArrays()).toEqual(x.toArrays())
    }
  })

  it('round trips through Extreme Classification Repository text, plain and gzip', async () => {
    const { x, y } = problem({ rows: 50 })
    for (const name of ['t.txt', 't.txt.gz']) {
      await writeXmc(place(name), x, y)
      const back = await readXmc(place(name), { threads: 2 })
      expect(back.x.toArrays()).toEqual(x.toArrays())
      expect(back.y.toArrays()).toEqual(y.toArrays())
    }
  })

  it('writes the dense block beside the sparse features', async () => {
    const x = matrix([[[1, 1]]], 2)
    const both = Features.from(x, Dense.from({ rows: 1, cols: 2, values: new Float32Array([0.5, 0]) }))
    await writeXmc(place('both.txt'), both, matrix([[[0, 1]]], 1))
    expect((await readXmc(place('both.txt'))).x.row(0).indices).toEqual(new Uint32Array([1, 2]))
  })

  it('round trips dense rows through .npy', async () => {
    await writeNpy(place('d.npy'), Dense.from({ rows: 2, cols: 2, values: new Float32Array([1, 2, 3, 4]) }))
    expect([...(await readNpy(place('d.npy'))).toArray()]).toEqual([1, 2, 3, 4])
  })

  it('reads LIBSVM text', async () => {
    writeFileSync(place('a.svm'), '0,2 1:0.5 3:2\n1 1:1\n')
    const { x, y } = await readLibsvm(place('a.svm'), { oneBased: true, features: 9, labels: 4 })
    expect([x.rows, x.cols, y.cols, x.row(0).indices[1]]).toEqual([2, 9, 4, 2])
  })

  it('round trips through LIBSVM text, plain and gzip', async () => {
    const { x, y } = problem({ rows: 50 })
    const sizes = { features: x.cols, labels: y.cols }
    for (const name of ['b.svm', 'b.svm.gz'])
      for (const oneBased of [true, false]) {
        await writeLibsvm(place(name), x, y, { oneBased })
        const back = await readLibsvm(place(name), { oneBased, ...sizes })
        expect(back.x.toArrays()).toEqual(x.toArrays())
        expect(back.y.toArrays()).toEqual(y.toArrays())
      }
    const blank = [matrix([[]], 1), matrix([[]], 1)] as const
    await expectError(
      () => writeLibsvm(place('no.svm'), ...blank),
      'UNSUPPORTED',
      /no\.svm: row 0 has neither/,
    )
    await expectError(() => writeLibsvm(place('no.svm'), x, y, { base: 1 } as never), 'UNKNOWN_OPTION')
    expect(existsSync(place('no.svm'))).toBe(false)
  })

  it('packs arrays where the name says so', async () => {
    const { x } = problem({ rows: 50 })
    await writeNpz(place('x.npz.gz'), x)
    await writeNpy(place('d.npy.gz'), Dense.from({ rows: 1, cols: 2, values: new Float32Array([1, 2]) }))
    for (const name of ['x.npz.gz', 'd.npy.gz'])
      expect([...readFileSync(place(name)).subarray(0, 2)]).toEqual([0x1f, 0x8b])
    expect((await readNpz(place('x.npz.gz'))).toArrays()).toEqual(x.toArrays())
    expect([...(await readNpy(place('d.npy.gz'))).toArray()]).toEqual([1, 2])
  })

  it('names file, line and fault', async () => {
    writeFileSync(place('bad.txt'), '2 4 3\n0 1:0.5\n1 9:1\n')
    await expectError(() => readXmc(place('bad.txt')), 'INDEX_OUT_OF_RANGE', /bad\.txt.*3/)
    writeFileSync(place('bad.txt'), 'hello\n')
    await expectError(() => readXmc(place('bad.txt')), 'PARSE', /bad\.txt/)
    writeFileSync(place('bad.npz'), 'PK no archive')
    await expectError(() => readNpz(place('bad.npz')), 'PARSE', /bad\.npz/)
    await expectError(() => readNpy(place('bad.npz')), 'PARSE')
    for (const read of [readXmc, readLibsvm, readNpz, readNpy])
      await expectError(() => read(place('missing')), 'IO', /missing/)
    await expectError(() => readNpz(dir), 'IO')
  })

  it('leaves nothing behind where it cannot write', async () => {
    const { x } = problem({ rows: 5 })
    await expectError(() => writeNpz(place('no/folder/x.npz'), x), 'IO')
    const before = readdirSync(dir)
    await expectError(() => writeNpz(dir, x), 'IO')
    expect(readdirSync(dir)).toEqual(before)
    expect(existsSync(place('no'))).toBe(false)
  })

  it('refuses wrong arguments', async () => {
    for (const path of [undefined, 3, '', 'a\0b', new URL('http://localhost/x')])
      await expectError(() => readNpz(path as never), 'INVALID_ARGUMENT', /for path/)
    await expectError(() => writeNpz(place('x'), {} as never), 'INVALID_ARGUMENT', /a Csr for matrix/)
    await expectError(() => writeNpz(place('x'), matrix([], 1), { packed: 1 } as never), 'UNKNOWN_OPTION')
    await expectError(() => readLibsvm(place('x'), { oneBased: 1 } as never), 'INVALID_ARGUMENT', /oneBased/)
    await expectError(() => writeNpy(place('x'), matrix([], 1) as never), 'INVALID_ARGUMENT')
    const closed = matrix([], 1)
    closed.close()
    await expectError(() => writeNpz(place('x'), closed), 'CLOSED')
  })
})
