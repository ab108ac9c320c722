/** The short form of `npm run test:chaos`; needs root, for an engine of its own. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PrivateEngine } from '../support/private-dockerd.ts'
import { PLANTED_BUGS } from './planted-bugs.ts'
import { walk } from './walk.ts'
import { startEngine } from './world.ts'

let engine: PrivateEngine

beforeAll(async () => {
  engine = await startEngine()
})

afterAll(() => engine.dispose())

describe('a walk over faults', { timeout: 300_000 }, () => {
  /** Seeds that once failed stay; what each found is beside it. */
  it.each([
    /** Two results of one call, when Redis was lost in its answer. */ 2,
    /** A warm sandbox left by a stop that ran out of time. */ 4,
    /** Files written over that did not fit into the next sandbox; sessions and servers come and go for minutes before. */ 12
  ])('holds for seed %i', async (seed) => {
    const { messages, effects, violations } = await walk(engine, { seed, seconds: 10, sessions: 4 })
    expect(violations).toEqual([])
    // It must have done something to have proved something.
    expect(Math.min(messages, effects)).toBeGreaterThan(3)
  })

  it.each(Object.entries(PLANTED_BUGS))('finds the planted bug %s', async (name, { caught }) => {
    const isLeak = name === 'leaked-container'
    const fault = isLeak ? 'kill a server' : 'cut sockets'
    // Longer than a killed server counts as alive; the other two bugs are in no container.
    const tidyMs = isLeak ? 15_000 : 0
    const { violations } = await walk(engine, { seed: 1, seconds: 6, sessions: 3, bug: name, fault, tidyMs })
    expect(violations.join('\n')).toMatch(caught)
  })
})
