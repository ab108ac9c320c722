import { afterEach, describe, expect, it } from 'vitest'
import { pathOf } from '../../../contract/path-target.ts'
import { emptyTranscript } from '../../../contract/transcript.ts'
import type { ExpectedTarget, PathTarget } from '../../../workspace-server/protocol.ts'
import { approvalHash } from '../../calls/offered-tool.ts'
import { AppError } from '../../lib/errors.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import type { ToolCall } from '../sandboxes/run-sandbox-tool.ts'
import { resultOf } from '../sandboxes/session-events.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

let chat: FakeChat | undefined
afterEach(() => chat?.close())

const NEW: PathTarget = { path: '/workspace/a.txt', is: 'new' }
const FILE: PathTarget = { path: '/workspace/a.txt', is: 'file', bytes: 8 }
const TOOLS = ['write_file', 'read_file'].map((name) => ({ name, inputSchema: {} }))

/** A sandbox where every path leads to `place.target`, which the test may change at any time. */
function sandbox(place: { target: PathTarget }, runs: ToolCall[]): NonNullable<FakeChatOptions['workspace']> {
  return (log, epoch) => ({
    containerId: 'c',
    epoch,
    listTools: async () => TOOLS,
    resolve: async (paths) => paths.map(() => place.target),
    callUnrecorded: async () => ({ content: [] }),
    saveFiles: async () => {},
    applyChanges: async () => null,
    change: async () => ({}),
    recordChange: async () => {},
    async runTool(call) {
      const started = {
        type: 'tool:started',
        data: { callId: call.callId },
        key: `started-${call.times}:${call.callId}`
      }
      await log.append('s1', [started], { epoch })
      if (!fits(place.target, call.expected))
        throw new AppError('conflict', 'target_changed', 'changed', { details: { target: place.target } })
      runs.push(call)
      const result = { isError: false, content: [] }
      await log.append('s1', [resultOf(call.callId, result)], { epoch })
      return result
    }
  })
}

function fits(target: PathTarget, expected: ExpectedTarget | undefined): boolean {
  if (!expected) return true
  if (expected.hash !== undefined && expected.hash !== target.hash) return false
  return target.path === expected.path && (expected.is === undefined || expected.is === target.is)
}

async function asking(args: object, options: Partial<FakeChatOptions> & { target?: PathTarget; tool?: string } = {}) {
  const place = { target: options.target ?? NEW }
  const runs: ToolCall[] = []
  const { tool = 'write_file' } = options
  chat = await fakeChat({
    model: (_request, step) => [step === 0 ? called(tool, JSON.stringify(args), 'c') : said('done')],
    workspace: sandbox(place, runs),
    ...options
  })
  await chat.chat.send('s1', { text: 'go', id: undefined })
  const card = (await chat.until('tool:approval_required')).data
  const decide = (answer: object) => chat?.chat.decide('s1', { callId: 'c', approved: true, ...answer })
  const again = () => chat?.until('tool:approval_required', ({ again }) => again !== undefined)
  const done = () => chat?.until('turn:end')
  return { chat, place, runs, card, decide, again, done }
}

describe('a card', () => {
  it('shows where its path leads, and its hash covers that', async () => {
    const { card, runs, decide, done } = await asking({ path: 'a.txt', content: 'x' }, { target: FILE })
    expect(card.target).toEqual(FILE)
    const parts = { sessionId: 's1', callId: 'c', definition: String(card.definition), args: card.args }
    expect(card.hash).toBe(approvalHash({ ...parts, target: FILE }))
    expect(card.hash).not.toBe(approvalHash({ ...parts, target: NEW }))
    await decide({ hash: card.hash })
    await done()
    expect(runs).toMatchObject([{ expected: { path: FILE.path, is: 'file' }, times: 1 }])
  })

  it('is shown without a sandbox too, and then a write may not replace anything', async () => {
    const target = { path: '/workspace/b/c', is: 'unchecked' } as const
    const failing = { resolve: () => Promise.reject(new AppError('unavailable', 'engine_unavailable', 'none')) }
    const runs: ToolCall[] = []
    const workspace: FakeChatOptions['workspace'] = (log, epoch) => ({
      ...sandbox({ target: { path: target.path, is: 'file' } }, runs)(log, epoch),
      ...failing
    })
    const { card, decide, again } = await asking({ path: '../workspace//b/./c', content: '' }, { workspace })
    expect(card.target).toEqual(target)
    await decide({})
    expect((await again())?.data.target).toEqual({ path: target.path, is: 'file' })
    expect(runs).toEqual([])
  })

  it('has no target if nobody is asked, and none for a call without a path', async () => {
    const { card, runs, done } = await asking({ path: 'a' }, { policy: () => 'allow' })
    expect(card.target).toBeUndefined()
    await done()
    expect(runs).toMatchObject([{ expected: undefined }])
    expect(pathOf({ server: 'workspace', name: 'toString' }, { path: 'a' })).toBeUndefined()
    expect(pathOf({ server: 'other', name: 'write_file' }, { path: 'a' })).toBeUndefined()
    expect(pathOf({ server: 'workspace', name: 'execute_command' }, { cwd: 'a' })).toBe('a')
  })
})

describe('a path that leads elsewhere when the call runs', () => {
  // Checked: if no target is sent with the call, the file is overwritten.
  it('stops it, and the person is asked again with what is there now', async () => {
    const { chat, place, runs, card, decide, again, done } = await asking({ path: 'a.txt', content: 'x' })
    place.target = FILE
    await decide({ hash: card.hash })
    const second = (await again())?.data
    expect(second).toMatchObject({ callId: 'c', target: FILE, again: { times: 2, isEdited: false } })
    expect(runs).toEqual([])
    expect(await chat?.chat.transcript('s1')).toMatchObject({ turnId: 't1' })
    await expect(decide({ hash: card.hash })).rejects.toMatchObject({ code: 'stale' })
    await decide({ hash: second?.hash })
    await done()
    expect(runs).toMatchObject([{ expected: { path: FILE.path, is: 'file' }, times: 2 }])
    const { calls, entries } = (await chat?.chat.transcript('s1')) ?? emptyTranscript()
    expect(calls.c).toMatchObject({ decision: { approved: true, by: 'human' }, result: { isError: false } })
    expect(entries.filter(({ kind }) => kind === 'call')).toHaveLength(1)
  })

  // Checked: if the content is no part of what the sandbox must find, the file is overwritten.
  it('stops a write to a file that has other content now, and takes what the card showed at the end', async () => {
    const shown = { ...FILE, hash: 'a'.repeat(64) }
    const { place, runs, decide, again, done } = await asking({ path: 'a.txt', content: 'x' }, { target: shown })
    place.target = { ...FILE, hash: 'b'.repeat(64) }
    await decide({})
    const second = (await again())?.data
    expect(second).toMatchObject({
      target: place.target,
      again: { times: 2, reason: expect.stringContaining('other content') }
    })
    expect(runs).toEqual([])
    place.target = { ...FILE, hash: 'c'.repeat(64) }
    await decide({ hash: second?.hash, seen: 'c'.repeat(64) })
    await done()
    expect(runs).toMatchObject([{ expected: { path: FILE.path, is: 'file', hash: 'c'.repeat(64) }, times: 2 }])
  })

  it('the content of the file does not count for an append', async () => {
    const args = { path: 'a.txt', content: 'x', append: true }
    const { runs, decide, done } = await asking(args, { target: { ...FILE, hash: 'a'.repeat(64) } })
    await decide({})
    await done()
    expect(runs[0]?.expected).toEqual({ path: FILE.path, is: 'file' })
  })

  it('asks only so often, and then tells the model', async () => {
    const { chat, place, runs, decide, done } = await asking({ path: 'a.txt', content: 'x' })
    for (let times = 1; times <= 5; times++) {
      await chat?.until('tool:approval_required', ({ again }) => ((again as { times?: number })?.times ?? 1) === times)
      place.target = { path: `/workspace/${times}`, is: 'new' }
      await decide({})
    }
    await done()
    expect(runs).toEqual([])
    expect((await chat?.until('tool:result'))?.data).toMatchObject({ isError: true })
  })

  it('does not matter for a file that is only read, unless the path leads to another file', async () => {
    const { place, runs, decide, done } = await asking({ path: 'a.txt' }, { tool: 'read_file' })
    place.target = FILE
    await decide({})
    await done()
    expect(runs).toMatchObject([{ expected: { path: FILE.path } }])
  })
})

describe('an edit', () => {
  it('is bound to the target that was shown with it, and to none before', async () => {
    const { chat, place, runs, decide, again, done } = await asking({ path: 'a.txt', content: 'x' })
    const args = { path: 'link/b', content: 'x' }
    const shown: PathTarget = { path: '/workspace/real/b', is: 'new', throughLink: true }
    place.target = shown
    expect(await chat?.chat.target('s1', { callId: 'c', args })).toEqual({ target: shown })
    place.target = { path: '/workspace/elsewhere/b', is: 'new' }
    await decide({ args, target: shown })
    expect((await again())?.data).toMatchObject({ args, target: place.target, again: { isEdited: true } })
    await decide({})
    await done()
    expect(runs).toMatchObject([{ args, expected: { path: '/workspace/elsewhere/b', is: 'new' } }])
    expect(chat?.requests.at(-1)?.messages.at(-1)).toMatchObject({
      answers: [{ text: expect.stringContaining('The user changed the arguments') }]
    })
  })

  it('of a path that nobody resolved replaces nothing; an edit of the content alone replaces what the card showed', async () => {
    const other = await asking({ path: 'a.txt', content: 'x' }, { target: FILE })
    await other.decide({ args: { path: 'a.txt', content: 'y' } })
    await other.done()
    expect(other.runs).toMatchObject([{ args: { content: 'y' }, expected: { path: FILE.path, is: 'file' } }])
    await chat?.close()
    const { runs, decide, again } = await asking({ path: 'x', content: '' }, { target: FILE })
    await decide({ args: { path: '/workspace/a.txt', content: '' } })
    expect((await again())?.data.target).toEqual(FILE)
    expect(runs).toEqual([])
  })
})

it('a card from before targets were known runs as it was approved', async () => {
  const { runs, card, place, decide, done } = await asking(
    { path: 'a.txt', content: 'x' },
    {
      policy: createPolicy([]),
      // As an older version wrote it: no target, and a hash without one.
      events: (log) => ({
        ...log,
        read: (...given) => log.read(...given),
        append: (id, list, options) => log.append(id, list.map(asBefore), options)
      })
    }
  )
  expect(card.target).toBeUndefined()
  place.target = FILE
  await decide({ hash: card.hash })
  await done()
  expect(runs).toMatchObject([{ expected: undefined, times: 1 }])
})

function asBefore<T extends { type: string; data: Record<string, unknown> }>(event: T): T {
  if (event.type !== 'tool:approval_required') return event
  const { target: _, ...data } = event.data
  const { callId, definition, args } = data
  const parts = { sessionId: 's1', callId: String(callId), definition: String(definition), args }
  return { ...event, data: { ...data, hash: approvalHash(parts) } }
}
