import { expect, it } from 'vitest'
import type { ChangedFile } from '../../contract/effects/change-set.ts'
import type { EventData, EventType, SessionEvent } from '../../contract/events.ts'
import { reviewNotes } from './review-notes.ts'
import { workspaceNotes } from './workspace-notes.ts'

const file = (path: string): ChangedFile => ({
  path,
  after: { type: 'file', mode: 420, size: 1, hash: 'a'.repeat(64) }
})
const changes = (changeId: string, ...paths: string[]) => ({
  ...{ changeId, hash: 'h', total: paths.length, files: paths.map(file) }
})

/** A log, and the `seq` of each event in it. */
function logOf() {
  const events: SessionEvent[] = []
  function add<T extends EventType>(type: T, data: EventData<T>): number {
    const seq = events.length + 1
    events.push({ type, seq, at: seq, data } as SessionEvent)
    return seq
  }
  const say = (text: string) => add('user:message', { turnId: `t${events.length}`, text })
  /** The model asks for a call, and answers a message. */
  const asked = new Map<string, number>()
  const ask = (callId: string) => asked.set(callId, add('agent:response', { turnId: 't', text: '' }))
  const answer = (message: number) => add('agent:response', { turnId: `t${message - 1}`, text: 'ok' })
  const write = (changeId: string, ...paths: string[]) =>
    add('tool:result', { callId: changeId, isError: false, content: [], changes: changes(changeId, ...paths) })
  const revert = (of: string, scope: 'one' | 'since', ...paths: string[]) =>
    add('files:reverted', { of, scope, changes: changes(`revert:${of}`, ...paths), by: 'human' })
  const rewind = (from: number) => add('history:rewound', { from, by: 'human' })
  return {
    events,
    add,
    say,
    ask,
    answer,
    write,
    revert,
    rewind,
    note: (seq: number) => workspaceNotes(events, (id) => asked.get(id)).get(seq)
  }
}

// Seen before: nothing. The model believed that the files were as it had left them before.
it('says after a rewind of the conversation which files its calls have left changed', () => {
  const log = logOf()
  log.say('one')
  log.write('c1', 'kept.txt')
  const from = log.say('two')
  log.write('c2', 'a.txt', 'b.txt')
  log.rewind(from)
  const next = log.say('three')
  expect(log.note(next)).toMatch(/took back a later part.*still there: "a\.txt", "b\.txt"\./)
  expect(log.note(next)).not.toContain('kept.txt')
  // If the message that tells it is taken back, the next one tells it.
  log.rewind(next)
  expect(log.note(log.say('four'))).toMatch(/"a\.txt", "b\.txt"/)
})

// Seen before: "the user has reverted a.txt", of a file that the model had never heard of.
it('says nothing about files that were put back together with the conversation', () => {
  const log = logOf()
  log.say('one')
  const from = log.say('two')
  log.write('c1', 'a.txt')
  log.write('c2', 'a.txt', 'b.txt')
  log.revert('c1', 'since', 'a.txt', 'b.txt')
  log.rewind(from)
  expect(log.note(log.say('three'))).toBeUndefined()
})

it('says which files stay changed if only some were put back, then or later', () => {
  const log = logOf()
  const from = log.say('one')
  log.write('c1', 'a.txt', 'b.txt', 'c.txt')
  log.revert('c1', 'one', 'a.txt')
  log.rewind(from)
  log.revert('c1', 'one', 'b.txt')
  const note = log.note(log.say('two'))
  expect(note).toMatch(/still there: "c\.txt"\./)
})

it('says which files a call has changed that was kept or still ran when it was taken back', () => {
  const log = logOf()
  log.say('one')
  const from = log.say('two')
  log.ask('c1')
  log.ask('c2')
  log.rewind(from)
  log.write('c1', 'a.txt', 'b.txt')
  log.revert('c1', 'one', 'b.txt')
  const next = log.say('three')
  log.write('c2', 'c.txt')
  log.answer(next)
  expect(log.note(next)).toMatch(/still there: "a\.txt", "c\.txt"\./)
  log.rewind(next)
  expect(log.note(log.say('four'))).toMatch(/still there: "a\.txt", "c\.txt"\./)
})

it('says it with the next message if the model has answered already, and only of what was taken back', () => {
  const log = logOf()
  log.say('one')
  log.ask('c1')
  const from = log.say('two')
  log.ask('c2')
  log.rewind(from)
  const next = log.say('three')
  log.answer(next)
  log.write('c1', 'known.txt')
  log.write('c2', 'a.txt')
  expect(log.note(next)).toBeUndefined()
  expect(log.note(log.say('four'))).toMatch(/still there: "a\.txt"\./)
  log.rewind(from)
  expect(log.note(log.say('five'))).toMatch(/still there: "a\.txt"\./)
})

it('says which reviewed files are there if the review was taken back before it was applied', () => {
  const log = logOf()
  log.say('one')
  log.add('review:opened', { reviewId: 'r', turnId: 't', changes: changes('review:r', 'kept.py') })
  const from = log.say('two')
  const grown = changes('review:r', 'kept.py', 'later.py')
  log.add('review:opened', { reviewId: 'r', turnId: 't', changes: grown })
  log.add('review:resolved', { reviewId: 'r', hash: 'h', accept: 'all', by: 'human' })
  log.rewind(from)
  log.add('review:applied', { reviewId: 'r', rejected: [], rejectedTotal: 0, changes: grown })
  expect(log.note(log.say('three'))).toMatch(/still there: "later\.py"\./)
})

it('still tells of a revert of changes that the model knows', () => {
  const log = logOf()
  log.say('one')
  log.write('c1', 'a.txt')
  const from = log.say('two')
  log.revert('c1', 'one', 'a.txt')
  log.rewind(from)
  expect(log.note(log.say('three'))).toMatch(/reverted "a\.txt"/)
})

it('leaves out what ran in a fork, and counts files that are not listed', () => {
  const log = logOf()
  const from = log.say('one')
  const many = { ...changes('c2', 'x.txt'), total: 500 }
  log.add('tool:result', { callId: 'c1', isError: false, content: [], isForked: true, changes: changes('c1', 'f.txt') })
  log.add('tool:result', { callId: 'c2', isError: false, content: [], changes: many })
  log.rewind(from)
  const note = log.note(log.say('two'))
  expect(note).toMatch(/"x\.txt" and 499 more/)
  expect(note).not.toContain('f.txt')
})

// Seen before: with the message that told it, the decision on the review was lost.
it('tells the decision on a review again, unless the review itself was taken back', () => {
  const log = logOf()
  const first = log.say('one')
  log.add('review:opened', { reviewId: 'r', turnId: 't', changes: changes('review:r', 'a.txt') })
  log.add('review:resolved', { reviewId: 'r', hash: 'h', accept: 'none', by: 'human', comment: 'not like that' })
  log.add('review:applied', { reviewId: 'r', rejected: ['a.txt'], rejectedTotal: 1 })
  const second = log.say('two')
  log.rewind(second)
  const third = log.say('three')
  expect([...reviewNotes(log.events).keys()]).toEqual([third])
  expect(reviewNotes(log.events).get(third)).toContain('not like that')
  log.rewind(first)
  log.say('four')
  expect(reviewNotes(log.events).size).toBe(0)
})

// Seen before: the model was told nothing about the files of the turn that it still knew, because the review was decided in a later one.
it('tells of a revert of reviewed files that an earlier turn had made, and not of those that were taken back', () => {
  const log = logOf()
  log.say('one')
  log.add('review:opened', { reviewId: 'r', turnId: 't', changes: changes('review:r', 'kept.py', 'both.py') })
  const from = log.say('two')
  log.add('review:opened', {
    ...{ reviewId: 'r', turnId: 't' },
    changes: changes('review:r', 'kept.py', 'both.py', 'later.py')
  })
  log.add('review:resolved', { reviewId: 'r', hash: 'h', accept: 'all', by: 'human', comment: 'use tabs' })
  log.add('review:applied', {
    ...{ reviewId: 'r', rejected: [], rejectedTotal: 0 },
    changes: changes('review:r', 'kept.py', 'both.py', 'later.py')
  })
  log.revert('review:r', 'since', 'kept.py', 'both.py', 'later.py')
  log.rewind(from)
  const next = log.say('three')
  expect(log.note(next)).toMatch(/reverted "kept\.py" and "both\.py"\./)
  expect(log.note(next)).not.toContain('later.py')
  expect(reviewNotes(log.events).get(next)).toContain('use tabs')
})

it('names only the reviewed files of the turns that were taken back, if the files stay', () => {
  const log = logOf()
  const later = { type: 'file' as const, mode: 420, size: 2, hash: 'b'.repeat(64) }
  const grown = {
    ...changes('review:r', 'kept.py', 'both.py', 'later.py'),
    files: [file('kept.py'), { ...file('both.py'), after: later }, file('later.py')]
  }
  log.say('one')
  log.add('review:opened', { reviewId: 'r', turnId: 't', changes: changes('review:r', 'kept.py', 'both.py') })
  const from = log.say('two')
  log.add('review:opened', { reviewId: 'r', turnId: 't', changes: grown })
  log.add('review:resolved', { reviewId: 'r', hash: 'h', accept: 'all', by: 'human' })
  log.add('review:applied', { reviewId: 'r', rejected: [], rejectedTotal: 0, changes: grown })
  log.rewind(from)
  expect(log.note(log.say('three'))).toMatch(/still there: "both\.py", "later\.py"\./)
})
