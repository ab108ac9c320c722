import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { noAudit } from '../../audit/audit.fixture.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { StepEvent } from '../../models/port.ts'
import { createDefinitionGuard } from '../../policy/definition-guard.ts'
import type { EventLog } from '../../storage/event-log.ts'
import { storeUnavailable } from '../../storage/store-errors.ts'
import { Chat } from '../chat/chat.ts'
import { called, said } from '../chat/fake-chat.ts'
import { Toolbox } from '../turns/toolbox.ts'
import { type FakeSessions, fakeSessions } from './fake-sessions.ts'
import type { SessionManager } from './session-manager.ts'

let fake: FakeSessions
const chats: Chat[] = []
beforeEach(async () => {
  fake = await fakeSessions()
})
afterEach(async () => {
  await Promise.all(chats.splice(0).map((chat) => chat.stop()))
  await fake.close()
})

interface Given {
  step: () => AsyncIterable<StepEvent>
  sources?: ToolSource[]
  /** Stands between the chat and its log. */
  events?: EventLog
}

function chatOn(sessions: SessionManager, { step, sources = [], events = fake.store.events }: Given): Chat {
  const { keyValues } = fake.store
  const policy = () => 'allow' as const
  const model = 'demo/demo'
  const chat = new Chat({
    sessions,
    events,
    contents: fake.checkpoints,
    checkQuota: async () => {},
    mayWrite: async () => true,
    instructionsOf: async () => '',
    models: {
      catalog: async () => ({ default: model, models: [], providers: [] }),
      resolve: async () => model,
      prove: async () => {},
      costOf: () => undefined,
      step
    },
    policy,
    guard: createDefinitionGuard(keyValues),
    toolbox: new Toolbox({
      sources: () => sources,
      ownerOf: async () => 'local',
      policy,
      guard: createDefinitionGuard(keyValues),
      audit: noAudit,
      logger: silentLogger
    }),
    options: { limits: { maxSteps: 20 }, maxHistoryTokens: 10_000, network: 'none' },
    logger: silentLogger,
    publish: () => {},
    live: () => {}
  })
  chats.push(chat)
  return chat
}

async function* says(text: string): AsyncIterable<StepEvent> {
  yield said(text)
}

it('an instance that watches while another works does not take the session when that one is done', async () => {
  const { sessions: store, events } = fake.store
  const talking = Promise.withResolvers<void>()
  const onA = chatOn(await fake.start('a'), {
    async *step() {
      await talking.promise
      yield said('done')
    }
  })
  const onB = chatOn(await fake.start('b'), { step: () => says('not mine') })
  await onA.begin('s', 'demo/demo')
  await onA.send('s', { text: 'hello', id: undefined })
  await vi.waitFor(async () => expect(await store.get('s')).toMatchObject({ holder: 'a', busy: true }))
  const acquire = vi.spyOn(store, 'acquire')
  const leave = onB.attach('s')
  await vi.waitFor(() => expect(acquire).toHaveBeenCalledWith('s', 'b', expect.anything()))
  talking.resolve()
  await vi.waitFor(async () => expect((await events.read('s')).at(-1)?.type).toBe('turn:end'))
  leave()
  await vi.waitFor(() => expect(onB.openCount).toBe(0))
  // A change of hands would end every process in the sandbox, also those that the user has started there to stay.
  expect((await store.get('s'))?.holder).toBe('a')
})

it('an instance whose store was away for a moment lets nobody else end what it runs', async () => {
  const { sessions: store, events } = fake.store
  const sent = Promise.withResolvers<void>()
  const mail: ToolSource = {
    server: 'mail',
    list: async () => [{ name: 'send', inputSchema: { type: 'object' } }],
    async call() {
      await sent.promise
      return { content: [{ type: 'text', text: 'sent' }] }
    }
  }
  let away = 0
  const read: EventLog['read'] = async (...given) => {
    if (away > 0 && away--) throw storeUnavailable('The store is away.')
    return events.read(...given)
  }
  const steps = [called('mail__send'), said('done')]
  const onA = chatOn(await fake.start('a'), {
    async *step() {
      yield steps.shift() ?? said('again')
    },
    sources: [mail],
    events: { ...events, read }
  })
  const onB = chatOn(await fake.start('b'), { step: () => says('not mine') })
  const logged = async (type: string) => (await events.read('s')).filter((event) => event.type === type)
  await onA.begin('s', 'demo/demo')
  await onA.send('s', { text: 'hello', id: undefined })
  await vi.waitFor(async () => expect(await logged('tool:started')).toHaveLength(1))
  const acquire = vi.spyOn(store, 'acquire')
  onB.attach('s')
  away = 1
  await vi.waitFor(() => expect(away).toBe(0))
  acquire.mockClear()
  await vi.waitFor(() => expect(acquire.mock.calls.filter(([, who]) => who === 'b').length).toBeGreaterThan(2))
  sent.resolve()
  await vi.waitFor(async () => expect(await logged('turn:end')).toHaveLength(1))
  expect(await logged('tool:result')).toMatchObject([{ data: { isError: false, content: [{ text: 'sent' }] } }])
})

// Checked: without the comparison of epochs, the first instance still shows its own state.
it('shows the files that another instance has saved since', async () => {
  const [a, b] = [await fake.start('a'), await fake.start('b')]
  const save = (manager: SessionManager, path: string) =>
    manager.run('s1', async (workspace) => {
      await workspace.change({ kind: 'write', path, data: '', expected: null })
      await workspace.saveFiles()
    })
  const pathsOn = async (manager: SessionManager) => {
    const saved = await manager.openSaved('s1', { brief: true })
    const paths = [...saved.entries.keys()]
    await saved.close()
    return paths
  }
  await save(a, 'a.txt')
  expect(await pathsOn(a)).toEqual(['a.txt'])
  await save(b, 'b.txt')
  expect(await pathsOn(a)).toEqual(['a.txt', 'b.txt'])
})
