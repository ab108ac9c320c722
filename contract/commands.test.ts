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

  it('never take anything but a boolean for a yes', () => {
    const approval = COMMAND_SCHEMAS['tool:approval']
    fc.assert(
      fc.property(fc.jsonValue(), (approved) => {
        const parsed = approval.safeParse({ callId: 'c', approved })
        expect(parsed.success).toBe(typeof approved === 'boolean')
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
