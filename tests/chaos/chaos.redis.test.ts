/** A short form of `npm run test:chaos`. Needs root for its own engine. */
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
  /** Two of the seeds that once failed. `npm run test:chaos` walks many more, and longer. */
  it.each([
    /** Found two results of one call, when Redis was lost while it answered. */ 2,
    /** Found files that were overwritten because they did not fit into the next sandbox. */ 12
  ])('holds for seed %i', async (seed) => {
    const { messages, effects, violations } = await walk(engine, { seed, seconds: 8, sessions: 4 })
    expect(violations).toEqual([])
    // A walk in which nothing happened proves nothing.
    expect(Math.min(messages, effects)).toBeGreaterThan(3)
  })

  it('finds every planted bug', async () => {
    const bug = Object.keys(PLANTED_BUGS).join()
    // A killed server counts as alive for a while: only then can its containers be leaked.
    const { violations } = await walk(engine, {
      seed: 1,
      seconds: 8,
      sessions: 4,
      bug,
      fault: 'kill a server',
      tidyMs: 15_000
    })
    for (const { caught } of Object.values(PLANTED_BUGS)) expect(violations.join('\n')).toMatch(caught)
  })
})
