import { afterEach, expect, it, vi } from 'vitest'
import { createLogger } from './logger.ts'
import { createRefusals } from './refusals.ts'

afterEach(() => void vi.useRealTimers())

it('counts every refusal, writes a flood of the same one once, and says in the end how many were left out', () => {
  vi.useFakeTimers()
  const written: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(JSON.parse(line)) })
  const counted: string[] = []
  const refused = createRefusals(logger, (face, code) => void counted.push(`${face} ${code}`))
  const line = (sender: string, sessionId: string) => ({
    sentence: 'Connection refused.',
    sender,
    fields: { sessionId }
  })
  for (let i = 0; i < 5; i++) refused({ face: 'socket', code: 'unauthorized', line: line('192.0.2.1', `made-up-${i}`) })
  refused({ face: 'socket', code: 'unauthorized', line: line('192.0.2.2', 's') })
  refused({ face: 'chat', code: 'too_many_sessions' })
  expect(counted).toHaveLength(7)
  expect(written).toHaveLength(2)
  vi.advanceTimersByTime(70_000)
  expect(written).toHaveLength(3)
  const summary = { msg: 'Connection refused.', face: 'socket', code: 'unauthorized', repeated: 4 }
  expect(written[2]).toMatchObject({ ...summary, lastAt: expect.stringMatching(/Z$/) })
  vi.advanceTimersByTime(70_000)
  expect(written).toHaveLength(3)
})
