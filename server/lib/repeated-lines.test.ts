import { expect, it } from 'vitest'
import { AppError } from './errors.ts'
import { createLogger } from './logger.ts'
import { flushRepeatedLines, RepeatedLines } from './repeated-lines.ts'

it('writes the first line of a kind, and counts the others on the next one', () => {
  const lines = new RepeatedLines(1000)
  const written: string[] = []
  const take = (key: string, now: number) => lines.take(key, (skipped) => void written.push(`${key} ${skipped}`), now)
  for (const now of [0, 10, 999]) take('a', now)
  take('b', 999)
  for (const now of [1000, 2000]) take('a', now)
  expect(written).toEqual(['a 0', 'b 0', 'a 2', 'a 0'])
})

it('writes the count of what has ended as a summary with the time of the last line', () => {
  const written: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(JSON.parse(line)) })
  for (let i = 0; i < 3; i++) logger.warn({ part: 'engine' }, 'The engine is away.')
  logger.info('Ready again.')
  flushRepeatedLines()
  expect(written.map(({ msg }) => msg)).toEqual([
    'The engine is away.',
    'Ready again.',
    expect.stringMatching(/^Summary: repeated 2 times, last at 2.*Z: The engine is away\.$/)
  ])
  expect(written[2]).toMatchObject({ part: 'engine', repeated: 2, lastAt: expect.stringMatching(/Z$/) })
})

it('remembers a bounded number of lines', () => {
  const lines = new RepeatedLines(1000, 2)
  const written: string[] = []
  for (const key of ['a', 'b', 'c', 'b', 'a']) lines.take(key, (skipped) => void written.push(`${key} ${skipped}`), 0)
  // The last "a" is a new line, and "b" gives up its place with its count.
  expect(written).toEqual(['a 0', 'b 0', 'c 0', 'b 1', 'a 0'])
})

it('collapses warnings about the same thing, and neither news nor warnings about another', () => {
  const written: string[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(JSON.parse(line).msg) })
  for (let i = 0; i < 5; i++) {
    logger.warn({ sessionId: 's1' }, 'Not saved.')
    logger.warn({ sessionId: 's2' }, 'Not saved.')
    logger.error('Not saved.')
    logger.info('Session opened.')
  }
  expect(written.filter((line) => line === 'Not saved.')).toHaveLength(3)
  expect(written.filter((line) => line === 'Session opened.')).toHaveLength(5)
})

it('shows the sentence of an expected error and the stack of an unexpected one', () => {
  const written: { err: Record<string, string> }[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(JSON.parse(line)) })
  logger.warn({ err: new AppError('unavailable', 'store_unavailable', 'Redis is away.') }, 'one')
  logger.warn({ err: new TypeError('x is not a function') }, 'two')
  expect(written[0]?.err).toEqual({ code: 'store_unavailable', kind: 'unavailable', message: 'Redis is away.' })
  expect(written[1]?.err.stack).toContain('TypeError')
})

it('shows the words of a library only at the level debug, or where the fault is ours', () => {
  const shown = (level: string, kind: 'unavailable' | 'internal') => {
    const written: string[] = []
    const logger = createLogger(level, { write: (text: string) => void written.push(text) })
    const cause = new Error("Stream isn't writeable and enableOfflineQueue options is false")
    logger.warn({ err: new AppError(kind, 'store_unavailable', 'Redis is away.', { cause }) }, 'Not saved.')
    return written[0] ?? ''
  }
  expect(shown('info', 'unavailable')).not.toContain('enableOfflineQueue')
  expect(JSON.parse(shown('debug', 'unavailable')).err.detail).toContain('enableOfflineQueue')
  expect(JSON.parse(shown('info', 'internal')).err.detail).toContain('enableOfflineQueue')
})

it('says the sentence of an error once, and takes lines that differ in a number alone for the same', () => {
  const written: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(JSON.parse(line)) })
  for (const seconds of [2, 4, 11]) {
    const err = new AppError('unavailable', 'server_resting', `Failed, and will be retried in ${seconds} s.`)
    logger.warn({ err, server: 'a' }, `Left out: ${err.message}`)
  }
  logger.warn('The server "a1" is unknown.')
  logger.warn('The server "a2" is unknown.')
  expect(written).toHaveLength(3)
  expect(written[0]?.err).toEqual({ code: 'server_resting', kind: 'unavailable' })
})

it('tells lines of different containers apart by what their loggers are bound to', () => {
  const written: string[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(JSON.parse(line).containerId) })
  for (const containerId of ['c1', 'c2', 'c1']) logger.child({ containerId }).warn('Ignored.')
  expect(written).toEqual(['c1', 'c2'])
})
