import { pino } from 'pino'
import { afterEach, expect, it, vi } from 'vitest'
import { FakeEngine } from '../../sandbox/fake-engine.ts'
import { WarmPool } from './warm-pool.ts'

afterEach(() => vi.useRealTimers())

it('replaces a sandbox after its first call, or at once if none was left', async () => {
  vi.useFakeTimers()
  const engine = new FakeEngine()
  const create = vi.spyOn(engine, 'create')
  const owner = async () => ({ deployment: 'd', instance: 'i' })
  const pool = new WarmPool({ engine, owner, size: 2, logger: pino({ level: 'silent' }), made: new Set() })
  pool.fill()
  await vi.waitFor(() => expect(pool.ready).toBe(2))
  pool.take()
  await vi.advanceTimersByTimeAsync(0)
  expect(create).toHaveBeenCalledTimes(2)
  await vi.advanceTimersByTimeAsync(1000)
  expect(pool.ready).toBe(2)
  for (let at = 0; at < 3; at++) pool.take()
  await vi.advanceTimersByTimeAsync(0)
  expect(create).toHaveBeenCalledTimes(5)
  pool.take()
  await pool.stop()
  await vi.advanceTimersByTimeAsync(1000)
  // Those that were taken; the last one was not replaced.
  expect(engine.containers.size).toBe(4)
  expect(create).toHaveBeenCalledTimes(5)
})

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
