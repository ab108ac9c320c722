/**
 * Runs random sequences of operations and compares the store with the simplest correct one. Leases are long, so time does not
 * matter.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { SessionRecord, SessionStore } from './session-store.ts'

const LONG = 3_600_000
const MAX_LIVE = 2
const session = fc.constantFrom('s1', 's2', 's3')
const holder = fc.constantFrom('h1', 'h2')
/** The current epoch, or one that must be refused. */
const epochOf = fc.constantFrom<'current' | 'stale'>('current', 'current', 'current', 'stale')

type Step =
  | { verb: 'acquire'; session: string; holder: string }
  | { verb: 'touch'; session: string; epoch: 'current' | 'stale'; busy: boolean }
  | { verb: 'release' | 'reserve' | 'bind' | 'unbind' | 'remove'; session: string; epoch: 'current' | 'stale' }
  | { verb: 'takeIdle'; holder: string }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ verb: fc.constant('acquire' as const), session, holder }) },
  {
    weight: 3,
    arbitrary: fc.record({ verb: fc.constant('touch' as const), session, epoch: epochOf, busy: fc.boolean() })
  },
  {
    weight: 6,
    arbitrary: fc.record({
      verb: fc.constantFrom('release' as const, 'reserve', 'reserve', 'bind', 'unbind', 'remove'),
      session,
      epoch: epochOf
    })
  },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant('takeIdle' as const), holder }) }
)

type Known = Pick<SessionRecord, 'epoch' | 'holder' | 'busy' | 'live' | 'containerId'>

class Model {
  readonly sessions = new Map<string, Known>()
  /** The highest epoch that each id ever had, even after its record was removed. */
  readonly highest = new Map<string, number>()

  get live(): number {
    return [...this.sessions.values()].filter((known) => known.live).length
  }

  own(id: string, holder: string, epoch: number): void {
    expect(epoch).toBeGreaterThan(this.highest.get(id) ?? 0)
    this.highest.set(id, epoch)
    const known = this.sessions.get(id) ?? { live: false, containerId: null }
    this.sessions.set(id, { live: known.live, containerId: known.containerId, epoch, holder, busy: true })
  }
}

export function describeAgainstModel(open: () => SessionStore): void {
  it('behaves like the model under random sequences of operations', async () => {
    const store = open()
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const model = new Model()
        const prefix = `run-${run++}-`
        for (const each of steps) {
          await apply(store, model, prefix, each)
          await compare(store, model)
        }
        for (const [id, known] of model.sessions) expect(await store.remove(id, known.epoch)).toBe(true)
      }),
      { numRuns: 60 }
    )
  }, 60_000)
}

async function compare(store: SessionStore, model: Model): Promise<void> {
  const records = await store.list()
  const seen = records.map(({ sessionId, epoch, holder, busy, live, containerId }) => {
    return [sessionId, { epoch, holder, busy, live, containerId }] as const
  })
  expect(new Map(seen)).toEqual(model.sessions)
  expect(await store.countLive()).toBe(model.live)
}

async function apply(store: SessionStore, model: Model, prefix: string, step: Step): Promise<void> {
  if (step.verb === 'takeIdle') return await takeIdle(store, model, step.holder)
  const id = prefix + step.session
  if (step.verb === 'acquire') return await acquire(store, model, id, step.holder)
  const known = model.sessions.get(id)
  const epoch = step.epoch === 'current' && known ? known.epoch : (known?.epoch ?? 2) - 1
  const owner = known?.epoch === epoch ? known : undefined
  switch (step.verb) {
    case 'touch': {
      const prolonged = owner !== undefined && owner.holder !== null
      expect(await store.touch(id, epoch, { leaseMs: LONG, busy: step.busy, activity: true })).toBe(prolonged)
      if (prolonged) owner.busy = step.busy
      return
    }
    case 'release':
      await store.release(id, epoch)
      if (owner) Object.assign(owner, { holder: null, busy: false })
      return
    case 'reserve': {
      const expected = !owner ? 'lost' : owner.live || model.live < MAX_LIVE ? 'ok' : 'full'
      expect(await store.reserve(id, epoch, MAX_LIVE)).toBe(expected)
      if (owner && expected === 'ok') owner.live = true
      return
    }
    case 'bind':
      expect(await store.bind(id, epoch, `c-${epoch}`)).toBe(owner !== undefined)
      if (owner) Object.assign(owner, { containerId: `c-${epoch}`, live: true })
      return
    case 'unbind':
      expect(await store.unbind(id, epoch)).toBe(owner !== undefined)
      if (owner) Object.assign(owner, { containerId: null, live: false })
      return
    case 'remove':
      expect(await store.remove(id, epoch)).toBe(owner !== undefined)
      if (owner) model.sessions.delete(id)
  }
}

async function acquire(store: SessionStore, model: Model, id: string, holder: string): Promise<void> {
  const known = model.sessions.get(id)
  const result = await store.acquire(id, holder, LONG)
  if (known?.busy && known.holder !== holder) {
    expect(result).toMatchObject({ granted: false, holder: known.holder })
    return
  }
  expect(result.granted).toBe(true)
  if (!result.granted) return
  if (known?.holder === holder) {
    expect(result.record.epoch).toBe(known.epoch)
    known.busy = true
  } else model.own(id, holder, result.record.epoch)
}

async function takeIdle(store: SessionStore, model: Model, holder: string): Promise<void> {
  const free = [...model.sessions].filter(([, known]) => {
    return known.live && !known.busy && (known.holder === null || known.holder === holder)
  })
  const taken = await store.takeIdle(holder, { idleMs: 0, leaseMs: LONG, limit: 100 })
  expect(taken.map((record) => record.sessionId).sort()).toEqual(free.map(([id]) => id).sort())
  for (const record of taken) model.own(record.sessionId, holder, record.epoch)
}
