import { pino } from 'pino'
import { afterEach, expect, it, vi } from 'vitest'
import { FakeEngine } from '../../sandbox/fake-engine.ts'
import { WarmPool } from './warm-pool.ts'

afterEach(() => vi.useRealTimers())

it('warns once of an engine that is away, however often it tries, and again of another reason', async () => {
  vi.useFakeTimers()
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
  const engine = new FakeEngine()
  const create = vi.spyOn(engine, 'create').mockRejectedValue(new Error('away'))
  const owner = async () => ({ deployment: 'd', instance: 'i' })
  const pool = new WarmPool({ engine, owner, size: 2, logger, made: new Set() })
  pool.fill()
  await vi.advanceTimersByTimeAsync(300_000)
  expect(create.mock.calls.length).toBeGreaterThan(10)
  expect(lines).toEqual(['A warm sandbox could not be created: away'])
  create.mockRejectedValue(new Error('full'))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines).toEqual(['A warm sandbox could not be created: away', 'A warm sandbox could not be created: full'])
  await pool.stop()
})
