import { afterEach, expect, it } from 'vitest'
import type { StepRequest } from '../../models/port.ts'
import { WorkspaceHistory } from '../files/workspace-history.ts'
import { fakeSessions } from '../sandboxes/fake-sessions.ts'
import type { Workspace } from '../sandboxes/open-workspace.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

let chat: FakeChat
afterEach(() => chat.close())

const request = { changeId: 'call:c', scope: 'one', hash: 'h' } as const
const unused = () => Promise.reject(new Error('not in this test'))
const workspace =
  (applyChanges: Workspace['applyChanges']): NonNullable<FakeChatOptions['workspace']> =>
  (_log, epoch) => ({
    ...{ containerId: 'c', epoch, listTools: async () => [], resolve: unused, callUnrecorded: unused },
    ...{ saveFiles: unused, change: unused, recordChange: unused, runTool: unused, applyChanges }
  })
const file = { path: 'a', type: 'file', mode: 0o644, mtimeMs: 1, size: 1, hash: 'f'.repeat(64) } as const

it('a revert is recorded once it is stored, and the model is told with the next message', async () => {
  const changes = [{ path: 'a', before: file, after: null }]
  chat = await fakeChat({
    workspace: workspace(async ({ version }) => ({ ...version, kind: 'version', at: 1, changes }))
  })
  const { changes: shown } = await chat.chat.revert('s1', request)
  expect(shown).toMatchObject({ total: 1, files: [{ path: 'a' }] })
  expect((await chat.log()).at(-1)).toMatchObject({
    type: 'files:reverted',
    data: { of: 'call:c', scope: 'one', changes: shown, by: 'human' }
  })
  await chat.chat.send('s1', { text: 'go on' })
  await chat.until('turn:end')
  expect(chat.requests[0]?.messages.at(-1)).toMatchObject({ note: expect.stringContaining('reverted "a"') })
})

// Checked: without completing it, the model never hears of the revert.
it('tells the model of a revert whose event was lost in a crash, once', async () => {
  const sessions = await fakeSessions()
  const manager = await sessions.start('a')
  const model = (_: StepRequest, step: number) => [
    step === 0 ? called('write_file', JSON.stringify({ path: 'a.txt', content: 'x' }), 'c') : said('ok')
  ]
  const on = { store: sessions.store, sessions: manager }
  const dying = await fakeChat({
    ...{ model, on, policy: () => 'allow' as const },
    events: (log) => ({
      ...log,
      append: (id, events, options) =>
        events.some(({ type }) => type === 'files:reverted')
          ? Promise.reject(new Error('killed'))
          : log.append(id, events, options)
    })
  })
  await dying.chat.send('s1', { text: 'go' })
  await dying.until('turn:end')
  const history = new WorkspaceHistory(manager)
  const { hash } = await history.revertPlan('s1', 'call:c', 'one')
  await expect(dying.chat.revert('s1', { changeId: 'call:c', scope: 'one', hash })).rejects.toThrow('killed')
  await dying.close()
  chat = await fakeChat({ on })
  for (const turnId of ['t2', 't3']) {
    await chat.chat.send('s1', { text: 'go on' })
    await chat.until('turn:end', (data) => data.turnId === turnId)
  }
  expect(chat.requests[0]?.messages.at(-1)).toMatchObject({ note: expect.stringContaining('reverted "a.txt"') })
  expect((await chat.log()).filter(({ type }) => type === 'files:reverted')).toHaveLength(1)
  await chat.close()
  await sessions.close()
})

it('a revert that changes nothing leaves no trace, and none is made while a call runs', async () => {
  const running = Promise.withResolvers<void>()
  const desk = {
    server: 'desk',
    list: async () => [{ name: 'slow', description: 'Takes long.', inputSchema: { type: 'object' } }],
    async call() {
      await running.promise
      return { content: [] }
    }
  }
  const model = (_: StepRequest, step: number) => [step === 0 ? called('desk__slow') : said('done')]
  chat = await fakeChat({ workspace: workspace(async () => null), model, sources: [desk], policy: () => 'allow' })
  expect(await chat.chat.revert('s1', request)).toEqual({})
  await chat.chat.send('s1', { text: 'go' })
  await chat.until('tool:started')
  await expect(chat.chat.revert('s1', request)).rejects.toMatchObject({ code: 'call_running' })
  running.resolve()
  await chat.until('turn:end')
  expect(await chat.chat.revert('s1', request)).toEqual({})
  expect((await chat.log()).map(({ type }) => type)).not.toContain('files:reverted')
})
