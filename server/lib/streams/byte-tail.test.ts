import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ByteTail } from './byte-tail.ts'

it('keeps exactly the last bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme-ascii', maxLength: 40 })), (pieces) => {
      const tail = new ByteTail(16)
      for (const piece of pieces) tail.push(Buffer.from(piece))
      expect(tail.text()).toBe(pieces.join('').slice(-16))
    })
  )
})

it('leaves out a character cut in half at the front', () => {
  const tail = new ByteTail(5)
  tail.push(Buffer.from('ééé'))
  expect(tail.text()).toBe('éé')
})
