import { describe, expect, it } from 'vitest'
import { type CallEntry, emptyTranscript, type Transcript } from '../../contract/transcript.ts'
import { nextAction } from './next-action.ts'

const LIMITS = { maxSteps: 3 }

function call(more: Partial<CallEntry>): CallEntry {
  const base = { callId: 'c', turnId: 't1', server: 's', name: 'n', args: {}, definition: '', hash: '' }
  return { ...base, queuePosition: 1, totalInQueue: 1, requestedAt: 0, ...more }
}

function open(...calls: Partial<CallEntry>[]): Transcript {
  const entries = calls.map((more, at) => [`c${at}`, call({ callId: `c${at}`, ...more })] as const)
  return { ...emptyTranscript(), turnId: 't1', calls: Object.fromEntries(entries) }
}

const yes = { approved: true, by: 'human', at: 0 } as const
const no = { approved: false, by: 'human', at: 0 } as const
const result = { isError: false, content: [], at: 0 }

describe('what comes next', () => {
  it.each([
    ['no turn', emptyTranscript(), 'idle'],
    ['a question', open(), 'step'],
    ['an undecided call', open({}), 'wait'],
    ['one undecided, one done', open({}, { decision: yes, startedAt: 1, result }), 'wait'],
    ['one undecided, one approved', open({}, { decision: yes }), 'run'],
    ['a started call', open({ decision: yes, startedAt: 1 }), 'wait'],
    ['all decided and done', open({ decision: no }, { decision: yes, startedAt: 1, result }), 'step'],
    ['an open call of another turn', open({ turnId: 't0' }), 'step']
  ])('after %s: %s', (_, transcript, type) => {
    expect(nextAction(transcript, 1, LIMITS).type).toBe(type)
  })

  it('never runs a call that was started, whatever was decided', () => {
    const action = nextAction(open({ decision: yes, startedAt: 1 }, { decision: yes }), 1, LIMITS)
    expect(action).toMatchObject({ type: 'run', calls: [{ callId: 'c1' }] })
  })

  it('ends at the limits, and continues when one is raised', () => {
    expect(nextAction(open(), 3, LIMITS)).toEqual({ type: 'end', reason: 'step_limit' })
    const spent = { ...open(), usage: { inputTokens: 60, outputTokens: 40, cachedTokens: 0 } }
    const limits = { ...LIMITS, maxSessionTokens: 100 }
    expect(nextAction(spent, 1, limits)).toEqual({ type: 'end', reason: 'spending_limit' })
    expect(nextAction({ ...spent, raisedLimit: 101 }, 1, limits)).toEqual({ type: 'step' })
  })
})
