import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COMMAND_SCHEMAS, MAX_MESSAGE_CHARS } from './commands.ts'

describe('commands', () => {
  it('take a message as a text or an object', () => {
    expect(COMMAND_SCHEMAS.message.parse(' hi ')).toEqual({ text: 'hi' })
    expect(COMMAND_SCHEMAS.message.parse({ text: 'hi' })).toEqual({ text: 'hi' })
  })

  it.each(['', '  ', { text: '' }, {}, null, 7, 'x'.repeat(MAX_MESSAGE_CHARS + 1)])(
    'refuse %j as a message',
    (input) => {
      expect(COMMAND_SCHEMAS.message.safeParse(input).success).toBe(false)
    }
  )

  it('accept only a boolean as an approval', () => {
    const approval = COMMAND_SCHEMAS['tool:approval']
    fc.assert(
      fc.property(fc.jsonValue(), (approved) => {
        const parsed = approval.safeParse({ callId: 'c', approved })
        expect(parsed.success).toBe(typeof approved === 'boolean')
      })
    )
  })

  // Checked: without the limit on depth, the first of these is accepted.
  it.each([65, 100_000])('refuse arguments of %i levels', (levels) => {
    const deep = JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
    const parse = (args: unknown) => COMMAND_SCHEMAS['tool:approval'].safeParse({ callId: 'c', approved: true, args })
    expect(parse(deep).success).toBe(false)
    expect(parse(JSON.parse(`${'{"a":'.repeat(64)}1${'}'.repeat(64)}`)).success).toBe(true)
  })

  it('change the prototype of nothing, whatever the names are', () => {
    const name = fc.oneof(fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString'), fc.string())
    fc.assert(
      fc.property(fc.dictionary(name, fc.jsonValue()), (names) => {
        const args = JSON.parse(`{"__proto__":{"polluted":1},${JSON.stringify(names).slice(1)}`.replace(/,}$/, '}'))
        const parsed = COMMAND_SCHEMAS['tool:approval'].safeParse({ callId: 'c', approved: true, args })
        expect(Object.getPrototypeOf(parsed.data?.args ?? {})).toBe(Object.prototype)
        expect('polluted' in {}).toBe(false)
      })
    )
  })

  it('parse any JSON without throwing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        for (const schema of Object.values(COMMAND_SCHEMAS)) schema.safeParse(value)
      })
    )
  })
})
