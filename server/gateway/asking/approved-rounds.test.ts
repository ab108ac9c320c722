import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ApprovedRounds } from './approved-rounds.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const tool = { name: 'send', description: '', inputSchema: {}, hash: 'h' }
const round = { owner: 'o', server: 's', tool, args: { to: 'me' }, state: 'x' }

// Checked: if the key has no arguments, other arguments run without approval.
it.each([
  { ...round, owner: 'another' },
  { ...round, server: 'another' },
  { ...round, tool: { ...tool, hash: 'another' } },
  { ...round, args: { to: 'another' } },
  { ...round, state: 'another' },
  { ...round, state: undefined }
])('lets no other call run without approval: %j', (other) => {
  const rounds = new ApprovedRounds()
  rounds.keep(round, 'client')
  expect(rounds.take(other)).toBeUndefined()
  expect([rounds.take(round), rounds.take(round)]).toEqual(['client', undefined])
})

it('forgets rounds that nobody continues', () => {
  const rounds = new ApprovedRounds()
  rounds.keep(round, 'client')
  vi.advanceTimersByTime(601_000)
  expect(rounds.take(round)).toBeUndefined()
  for (let state = 0; state <= 1000; state++) rounds.keep({ ...round, state }, 'client')
  expect([rounds.take({ ...round, state: 0 }), rounds.take({ ...round, state: 1 })]).toEqual([undefined, 'client'])
})
