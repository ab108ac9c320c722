import { expect, it } from 'vitest'
import { recordingLogger } from '../../../tests/support/recording-logger.ts'
import { AppError } from '../errors.ts'
import { wireError } from './wire-error.ts'

// Checked: if the error's own text is sent, clients see it.
it('passes on our own errors, and for any other error only says where to look', () => {
  const log: string[] = []
  const logger = recordingLogger(log)
  const known = new AppError('invalid', 'bad', 'Bad.', { details: { secret: 1 }, cause: new Error('inner') })
  expect(wireError(known, logger)).toEqual({ code: 'bad', message: 'Bad.' })
  for (const thrown of [new Error('password 123'), 'password 123', undefined]) {
    const { code, message } = wireError(thrown, logger)
    expect(code).toBe('internal')
    expect(message).not.toContain('password')
    const id = /\(([\w-]+)\)/.exec(message)?.[1] ?? 'none'
    expect(log.at(-1)).toContain(id)
  }
})
