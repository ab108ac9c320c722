import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OutputKeeper } from './output-keeper.ts'

const LIMIT = 50

describe('OutputKeeper', () => {
  it('keeps everything that fits, however it is split', () => {
    const property = fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), fc.nat(), (text, seed) => {
      const bytes = Buffer.from(text)
      fc.pre(bytes.length <= 2 * LIMIT)
      const keeper = new OutputKeeper(LIMIT)
      const cut = bytes.length === 0 ? 0 : seed % bytes.length
      keeper.add(bytes.subarray(0, cut))
      keeper.add(bytes.subarray(cut))
      expect(keeper.result()).toEqual({ text: bytes.toString('utf8'), omittedBytes: 0 })
    })
    fc.assert(property)
  })

  it('keeps whole characters at both ends, and counts the rest', () => {
    const chunks = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }), {
      minLength: 20,
      maxLength: 60
    })
    const property = fc.property(chunks, fc.integer({ min: 1, max: 7 }), (texts, size) => {
      const whole = Buffer.from(texts.join('').replaceAll('[', '('))
      fc.pre(whole.length > 2 * LIMIT)
      const keeper = new OutputKeeper(LIMIT)
      for (let at = 0; at < whole.length; at += size) keeper.add(whole.subarray(at, at + size))
      const { text, omittedBytes } = keeper.result()
      const [head, tail] = text.split(`\n[… ${omittedBytes} bytes left out …]\n`)
      const [start, end] = [Buffer.from(head ?? ''), Buffer.from(tail ?? '')]
      expect(start.length + end.length + omittedBytes).toBe(whole.length)
      expect(whole.subarray(0, start.length).equals(start)).toBe(true)
      expect(whole.subarray(whole.length - end.length).equals(end)).toBe(true)
      expect(start.length).toBeGreaterThan(LIMIT - 4)
      expect(end.length).toBeGreaterThan(LIMIT - 4)
    })
    fc.assert(property)
  })

  it('gives less of both ends if asked', () => {
    const keeper = new OutputKeeper(LIMIT)
    keeper.add(Buffer.from('0123456789'))
    expect(keeper.result(5)).toEqual({ text: '0123456789', omittedBytes: 0 })
    expect(keeper.result(3)).toEqual({ text: '012\n[… 4 bytes left out …]\n789', omittedBytes: 4 })
  })
})
