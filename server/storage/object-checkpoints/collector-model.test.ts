/**
 * Whatever happens in whatever order, on a service that misbehaves: everything that was acknowledged can be read, a former owner changes
 * and deletes nothing, and no object goes within a day after something named it.
 */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { openEmbeddedStore } from '../embedded/open-embedded-store.ts'
import type { Fault } from '../objects/fake-object-service.ts'
import { hasRealService } from '../objects/fake-object-store.ts'
import type { Store } from '../store.ts'
import { claimBucket } from './claim-bucket.ts'
import { CollectorModel, type Step } from './collector-model.fixture.ts'
import { ObjectFixture } from './object-checkpoints.fixture.ts'

const FAULTS = ['lost', 'cut', 'busy', 'slow', 'forbidden', 'conflict'] as const
const KINDS = ['change', 'slow change', 'image', 'take over', 'wake up', 'collect', 'lose the store'] as const

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom<Step['kind']>(...KINDS, 'change', 'change', 'collect', 'collect', 'large'),
  session: fc.constantFrom('a', 'b'),
  hours: fc.constantFrom(0, 1, 13, 25, 49),
  faults: fc.array(fc.constantFrom<Fault | undefined>(...FAULTS, undefined, undefined, undefined), { maxLength: 6 }),
  skew: fc.constantFrom(0, 0, 0, -30, 30),
  lost: fc.constantFrom(undefined, undefined, undefined, true, false)
})

const SERVICES = [
  { name: 'in memory', onward: undefined, runs: 20 },
  ...(hasRealService ? [{ name: 'real', onward: process.env.TEST_S3_ENDPOINT, runs: 5 }] : [])
]

describe.each(SERVICES)('the collector among owners, $name', ({ onward, runs }) => {
  let other: Store
  let dir: string
  beforeEach(async () => {
    dir = temporaryFolder()
    other = await openEmbeddedStore({ dataDir: dir, logger: silentLogger })
  })
  afterEach(async () => {
    await other.close()
    discard(dir)
  })

  const played = async (steps: readonly Step[]) => {
    const fixture = await ObjectFixture.open({ onward })
    try {
      await claimBucket(fixture.objects, fixture.prefix, fixture.store.sessions)
      const model = new CollectorModel(fixture, other)
      await model.play(steps)
      await model.settle()
    } finally {
      await fixture.dispose()
    }
  }

  // Checked: fails without the limit for late uploads, without the second look, and if a day is an hour.
  it('keeps what counts, in any order', { timeout: 300_000 }, async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), played), { numRuns: runs })
  })

  const plain: Step = { kind: 'change', session: 'a', hours: 0, faults: [], skew: 0 }

  it('lets an owner that wakes up after hours and days change, read and delete nothing', async () => {
    const hours = [1, 25, 49]
    const steps = hours.flatMap((each): Step[] => [
      { ...plain, kind: 'take over' },
      plain,
      { ...plain, kind: 'wake up', hours: each },
      { ...plain, kind: 'collect' },
      { ...plain, kind: 'wake up' }
    ])
    await expect(played([plain, plain, ...steps])).resolves.toBeUndefined()
  })

  it('does not let a change count whose uploads were collected meanwhile', async () => {
    const slow: Step = { ...plain, kind: 'slow change', hours: 25 }
    await expect(played([plain, slow, plain, { ...slow, hours: 5 }])).resolves.toBeUndefined()
  })
})
