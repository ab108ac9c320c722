import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { silentLogger } from '../lib/logger.ts'
import type { StepEvent } from '../models/port.ts'
import { createPolicy } from '../tools/approval-policy.ts'
import { noAudit } from '../tools/audit/audit.fixture.ts'
import { createDefinitionGuard } from '../tools/definition-guard.ts'
import { Chat } from './chat.ts'
import { said } from './fake-chat.ts'
import { type FakeSessions, fakeSessions } from './fake-sessions.ts'
import type { SessionManager } from './session-manager.ts'
import { Toolbox } from './toolbox.ts'

let fake: FakeSessions
const chats: Chat[] = []
beforeEach(async () => {
  fake = await fakeSessions()
})
afterEach(async () => {
  await Promise.all(chats.splice(0).map((chat) => chat.stop()))
  await fake.close()
})

function chatOn(sessions: SessionManager, step: () => AsyncIterable<StepEvent>): Chat {
  const { events, facts } = fake.store
  const policy = createPolicy([])
  const model = 'demo/demo'
  const chat = new Chat({
    sessions,
    events,
    models: {
      catalog: async () => ({ default: model, models: [], providers: [] }),
      resolve: async () => model,
      prove: async () => {},
      step
    },
    policy,
    guard: createDefinitionGuard(facts),
    toolbox: new Toolbox({
      sources: () => [],
      ownerOf: async () => 'local',
      policy,
      audit: noAudit,
      logger: silentLogger
    }),
    options: { limits: { maxSteps: 20 }, maxHistoryTokens: 10_000, network: 'none' },
    logger: silentLogger,
    append: async (sessionId, list, epoch) =>
      void (await events.append(sessionId, list, epoch === undefined ? {} : { epoch })),
    live: () => {}
  })
  chats.push(chat)
  return chat
}

it('an instance that looks on while another works does not take the session when that one is done', async () => {
  const { sessions: store, events } = fake.store
  const talking = Promise.withResolvers<void>()
  const onA = chatOn(await fake.start('a'), async function* () {
    await talking.promise
    yield said('done')
  })
  const onB = chatOn(await fake.start('b'), async function* () {
    yield said('not mine')
  })
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
