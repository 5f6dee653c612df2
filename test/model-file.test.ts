import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AquilaError, XLinear } from 'aquila-xmc'
import { describe, expect, it } from 'vitest'
import { expectError, folder, learned } from './helpers.js'

const dir = folder()
const place = (name: string) => join(dir, name)
const { data, model } = await learned()

describe('saving and opening', () => {
  it('gives the same answers, from a file and from bytes', async () => {
    await model.save(place('m.aquila'))
    const top = await model.predict(data.x)
    const opened = await XLinear.open(place('m.aquila'), { verify: true })
    expect(await opened.predict(data.x)).toEqual(top)
    expect(opened.report).toBeUndefined()
    expect({ ...opened.info, mapped: false }).toEqual({ ...model.info, mapped: false })
    expect(opened.info.mapped).toBe(true)
    expect(opened.labelNames).toEqual(model.labelNames)
    await opened.verify()
    const bytes = readFileSync(place('m.aquila'))
    const held = await XLinear.fromBytes(bytes)
    bytes.fill(0)
    expect(await held.predict(data.x)).toEqual(top)
    expect(held.info.mapped).toBe(false)
  })

  it('reloads without downtime: a new file over the old name is another model', async () => {
    const path = place('live.aquila')
    await model.save(path)
    const before = await XLinear.open(path)
    const other = await XLinear.train(data.x, data.y, { labelNames: Array(40).fill('new') })
    await other.save(path)
    const after = await XLinear.open(path)
    expect([before.labelNames[0], after.labelNames[0]]).toEqual(['label 0', 'new'])
    expect((await before.predict(data.x)).rows).toBe(data.x.rows)
  })

  it('does not need a file that was read rather than mapped', async () => {
    const path = place('read.aquila')
    await model.save(path)
    const top = await model.predict(data.x)
    const opened = await XLinear.open(path, { map: false, verify: true })
    expect([opened.info.mapped, opened.info.bytes]).toEqual([false, model.info.bytes])
    // A mapped file would end the process here.
    truncateSync(path, 0)
    expect(await opened.predict(data.x)).toEqual(top)
    await opened.verify()
    opened.close()
    await expectError(
      () => XLinear.open(path, { map: false }),
      'BAD_MODEL',
      /read\.aquila: the file is empty/,
    )
    await expectError(() => XLinear.open(place('missing'), { map: false }), 'IO', /missing/)
    await expectError(() => XLinear.open(dir, { map: false }), 'BAD_MODEL', /no file/)
    await expectError(() => XLinear.open(path, { map: 1 as never }), 'INVALID_ARGUMENT', /for map/)
    const bytes = new Uint8Array()
    await expectError(() => XLinear.fromBytes(bytes, { map: false } as never), 'UNKNOWN_OPTION')
    const { signal } = new AbortController()
    await model.save(path)
    const again = await XLinear.open(path, { map: false }, { signal })
    expect(await again.predict(data.x)).toEqual(top)
  })

  it('refuses foreign, cut and altered files', async () => {
    await model.save(place('bad.aquila'))
    const whole = readFileSync(place('bad.aquila'))
    truncateSync(place('bad.aquila'), whole.length - 100)
    await expectError(() => XLinear.open(place('bad.aquila')), 'BAD_MODEL')
    writeFileSync(place('bad.aquila'), 'no model')
    await expectError(() => XLinear.open(place('bad.aquila')), 'BAD_MODEL')
    writeFileSync(place('bad.aquila'), '')
    await expectError(() => XLinear.open(place('bad.aquila')), 'BAD_MODEL')
    await expectError(() => XLinear.fromBytes(whole.subarray(0, 50)), 'BAD_MODEL')
    const altered = Buffer.from(whole)
    altered[whole.length >> 1] = (altered[whole.length >> 1] as number) ^ 0x10
    await expect(XLinear.fromBytes(altered, { verify: true })).rejects.toBeInstanceOf(AquilaError)
    await expectError(() => XLinear.open(place('missing')), 'IO', /missing/)
    await expectError(() => XLinear.open(3 as never), 'INVALID_ARGUMENT', /for path/)
    await expectError(() => XLinear.open(place('x'), { check: true } as never), 'UNKNOWN_OPTION')
    await expectError(() => XLinear.fromBytes('x' as never), 'INVALID_ARGUMENT', /a Uint8Array for bytes/)
    await expectError(() => model.save(place('no/folder/m')), 'IO')
    expect(existsSync(place('no'))).toBe(false)
  })
})
