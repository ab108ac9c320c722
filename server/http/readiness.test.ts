import { expect, it, vi } from 'vitest'
import { recordingLogger } from '../../tests/support/recording-logger.ts'
import { Readiness } from './readiness.ts'

it('logs each end of an outage only after its beginning, also of parts with the same reason and of one that fails again', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const log: string[] = []
  let fails = false
  const check = async () => {
    if (fails) throw new Error('The engine does not answer.')
    return 'ready'
  }
  const readiness = new Readiness({ engine: check, image: check }, recordingLogger(log))
  for (const state of [false, true, false, true, false]) {
    fails = state
    await readiness.look()
    vi.setSystemTime(Date.now() + 3000)
  }
  vi.useRealTimers()
  const lines = log.map((line) => JSON.parse(line) as { part: string; msg: string })
  for (const part of ['engine', 'image']) {
    const own = lines.filter((line) => line.part === part).map(({ msg }) => msg)
    const outage = [`Not ready: ${part}: The engine does not answer.`, `Ready again: ${part}.`]
    expect(own).toEqual([...outage, ...outage])
  }
})

// Checked: if every request runs a check, there are 200 writes.
it('looks at the parts once, however many ask at the same time', async () => {
  let looks = 0
  const readiness = new Readiness({ store: async () => `look ${++looks}` }, recordingLogger([]))
  const answers = await Promise.all(Array.from({ length: 100 }, () => readiness.look()))
  answers.push(...(await Promise.all(Array.from({ length: 100 }, () => readiness.look()))))
  expect(looks).toBe(1)
  expect(answers.every(({ ok, parts }) => ok && parts.store?.detail === 'look 1')).toBe(true)
})

it('warns of the first outage of a part that has worked, also if another one was never ready and nobody has asked', async () => {
  const log: string[] = []
  let fails = false
  const engine = async () => {
    if (fails) throw new Error('The engine does not answer.')
    return 'ready'
  }
  const image = async () => {
    throw new Error('It is being built.')
  }
  const readiness = new Readiness({ engine, image }, recordingLogger(log))
  readiness.start(() => false)
  await vi.waitFor(() => expect(log.join('')).toContain('It is being built.'), { interval: 5 })
  fails = true
  vi.useFakeTimers({ toFake: ['Date'] })
  vi.setSystemTime(Date.now() + 3000)
  await readiness.look()
  vi.useRealTimers()
  readiness.stop()
  const lines = log.map((line) => JSON.parse(line) as { part: string; level: number })
  expect(lines.map(({ part, level }) => [part, level])).toEqual([
    ['image', 30],
    ['engine', 40]
  ])
})
