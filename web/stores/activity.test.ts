import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { AuditEntry, AuditOutcome } from '../../contract/audit.ts'
import { api } from '../api.ts'
import { useActivity } from './activity.ts'

let trail: AuditEntry[] = []
const ask = vi.spyOn(api, 'audit')
beforeEach(() => {
  setActivePinia(createPinia())
  trail = []
  ask.mockImplementation(async ({ limit = '50', before, outcome }) => {
    const fitting = trail.filter((row) => (!before || row.id < before) && (!outcome || row.outcome === outcome))
    const entries = fitting.slice(0, Number(limit)).map((row) => ({ ...row }))
    return { entries, next: fitting.length >= Number(limit) ? (entries.at(-1)?.id ?? null) : null }
  })
})
afterEach(() => vi.clearAllMocks())

function happen(count: number, outcome: AuditOutcome = 'ok'): void {
  for (let each = 0; each < count; each++) {
    const id = String(trail.length).padStart(6, '0')
    trail.unshift({ id, at: '', kind: 'call', owner: 'local', door: 'stdio', outcome })
  }
}
const ids = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id)

it('keeps as many rows as were asked for, however many come', async () => {
  const activity = useActivity()
  happen(200)
  await activity.restart()
  await activity.older()
  for (let round = 0; round < 20; round++) {
    happen(10)
    await activity.refresh()
  }
  expect(ids(activity.entries)).toEqual(ids(trail.slice(0, 100)))
  await activity.older()
  expect(ids(activity.entries)).toEqual(ids(trail.slice(0, 150)))
})

it('shows no call as running that is over, under a filter or further down', async () => {
  const activity = useActivity()
  happen(3, 'running')
  happen(70)
  await activity.restart()
  await activity.older()
  const [first] = trail.slice(-1)
  if (first) first.outcome = 'ok'
  await activity.refresh()
  expect(activity.entries.at(-1)?.outcome).toBe('ok')

  activity.filter.outcome = 'running'
  await activity.restart()
  expect(activity.entries).toHaveLength(2)
  for (const row of trail) row.outcome = 'ok'
  await activity.refresh()
  expect(activity.entries).toEqual([])
})

it('keeps what lies below a new page, and leaves no gap', async () => {
  const activity = useActivity()
  happen(700)
  await activity.restart()
  for (let page = 0; page < 11; page++) await activity.older()
  expect(activity.entries).toHaveLength(600)
  happen(20)
  await activity.refresh()
  expect(ids(activity.entries)).toEqual(ids(trail.slice(0, 600)))
  happen(2000)
  await activity.refresh()
  expect(ids(activity.entries)).toEqual(ids(trail.slice(0, 500)))
  await activity.older()
  expect(ids(activity.entries)).toEqual(ids(trail.slice(0, 550)))
})

it('does not lose an older page to a refresh that comes in between', async () => {
  const activity = useActivity()
  happen(100)
  await activity.restart()
  const older = activity.older()
  await activity.refresh()
  await older
  expect(activity.entries).toHaveLength(100)

  happen(100)
  const outdated = activity.older()
  activity.filter.outcome = 'running'
  await activity.restart()
  await outdated
  expect(activity.entries).toEqual([])
})
