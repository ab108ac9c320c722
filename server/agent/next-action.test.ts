import { describe, expect, it } from 'vitest'
import { WORKSPACE } from '../../contract/own-sources.ts'
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

const sandbox = (at: number, more: Partial<CallEntry>) => ({ server: WORKSPACE, queuePosition: at, ...more })

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

  const running = { decision: yes, startedAt: 1 }
  const done = { ...running, result }
  const preview = { changes: { changeId: 'c', hash: 'h', total: 0, files: [] }, hash: 'h', result, at: 0 }
  const kept = { ahead: 'preview' as const, preview, decision: yes }
  it.each<[string, Transcript, string[]]>([
    [
      'runs one call to the sandbox at a time',
      open(sandbox(1, { decision: yes }), sandbox(2, { decision: yes })),
      ['c0']
    ],
    [
      'holds it back while an earlier one waits for a decision',
      open(sandbox(1, {}), sandbox(2, { decision: yes })),
      []
    ],
    ['holds it back while an earlier one runs', open(sandbox(1, running), sandbox(2, { decision: yes })), []],
    [
      'holds it back while an earlier preview waits',
      open(sandbox(1, { ahead: 'preview', preview }), sandbox(2, { decision: yes })),
      []
    ],
    ['puts a kept preview into the workspace first', open(sandbox(1, kept), sandbox(2, { decision: yes })), ['c0']],
    ['goes on after a rejected one', open(sandbox(1, { decision: no }), sandbox(2, { decision: yes })), ['c1']],
    ['goes on when the earlier one is done', open(sandbox(1, done), sandbox(2, { decision: yes })), ['c1']],
    [
      'keeps the order of the step, whatever the ids are',
      open(sandbox(2, { decision: yes }), sandbox(1, { decision: yes })),
      ['c1']
    ],
    ['previews nothing while an earlier call runs', open(sandbox(1, running), sandbox(2, { ahead: 'preview' })), []],
    [
      'does not hold back calls to MCP servers',
      open(sandbox(1, {}), { queuePosition: 2, decision: yes }, sandbox(3, { decision: yes })),
      ['c1']
    ],
    [
      'is not held back by calls to MCP servers',
      open({ queuePosition: 1 }, { queuePosition: 2, ...running }, sandbox(3, { decision: yes })),
      ['c2']
    ],
    [
      'finishes a kept preview of an earlier turn first',
      open(sandbox(1, { ...kept, turnId: 't0' }), sandbox(1, { decision: yes })),
      ['c0']
    ]
  ])('%s', (_, transcript, callIds) => {
    const action = nextAction(transcript, 1, LIMITS)
    expect(action.type === 'run' ? action.calls.map(({ callId }) => callId) : []).toEqual(callIds)
    if (callIds.length === 0) expect(action.type).toBe('wait')
  })
})
