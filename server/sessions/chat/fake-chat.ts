import { PATIENCE_MS } from '../../../tests/support/patience-ms.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import type { Audit } from '../../audit/audit.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { AppError } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createModels } from '../../models/create-models.ts'
import type { Models, StepEvent, StepRequest } from '../../models/port.ts'
import { type ApprovalPolicy, createPolicy } from '../../policy/approval-policy.ts'
import { createDefinitionGuard } from '../../policy/definition-guard.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'
import { openEmbeddedStore } from '../../storage/embedded/open-embedded-store.ts'
import type { EventLog, StoredEvent } from '../../storage/event-log.ts'
import { fakeCheckpoint } from '../../storage/fake-checkpoint.ts'
import { FakeContentStore } from '../../storage/fake-content-store.ts'
import type { Store } from '../../storage/store.ts'
import { noForks } from '../sandboxes/forks/no-forks.fixture.ts'
import type { Workspace } from '../sandboxes/open-workspace.ts'
import { onceKey, resultOf } from '../sandboxes/session-events.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import type { ChatDeps, ChatOptions } from '../turns/chat-options.ts'
import type { FindTools } from '../turns/router-source.ts'
import { Toolbox } from '../turns/toolbox.ts'
import { Chat } from './chat.ts'

type Script = (request: StepRequest, step: number) => AsyncIterable<StepEvent> | StepEvent[]

export interface FakeChatOptions {
  /** The script of the model for each of its steps, counted from 0. */
  model?: Script
  sources?: ToolSource[]
  policy?: ApprovalPolicy
  options?: Partial<ChatOptions>
  audit?: Audit
  find?: FindTools
  live?: ChatDeps['live']
  costOf?: Models['costOf']
  /** The person's instructions for all sessions. */
  instructions?: string
  /** How much each model can read. */
  contextTokens?: Record<string, number>
  checkQuota?: () => Promise<void>
  mayWrite?: (format: number) => Promise<boolean>
  /** The sandbox; without it, opening one fails. `log` stores a call's traces. */
  workspace?: (log: EventLog, epoch: number) => Workspace & Pick<HeldSession, 'runTool'>
  /** A store and sessions of the test's own, which close last. */
  on?: { store: Store; sessions: ChatDeps['sessions'] }
  programs?: ChatDeps['programs']
  /** Wraps the chat's log. */
  events?: (log: EventLog) => EventLog
}

export interface FakeChat {
  chat: Chat
  store: Store
  contents: ContentStore
  requests: StepRequest[]
  log(sessionId?: string): Promise<StoredEvent[]>
  /** Waits for a matching event. */
  until(type: string, fits?: (data: Record<string, unknown>) => boolean): Promise<StoredEvent>
  close(): Promise<void>
}

/** A chat on a real store, with scripted models and tools and no sandbox: leases are real, containers are not. */
export async function fakeChat(given: FakeChatOptions = {}): Promise<FakeChat> {
  const dataDir = temporaryFolder()
  const store = given.on?.store ?? (await openEmbeddedStore({ dataDir, logger: silentLogger }))
  const events = given.events?.(store.events) ?? store.events
  const requests: StepRequest[] = []
  const { sources = [], policy = createPolicy([]), options, audit = noAudit } = given
  const guard = createDefinitionGuard(store.keyValues)
  const shared = { policy, guard, audit, logger: silentLogger }
  const deps: ChatDeps = {
    sessions: given.on?.sessions ?? fakeSessions(store, events, given.workspace),
    events,
    contents: new FakeContentStore(),
    checkQuota: given.checkQuota ?? (async () => {}),
    mayWrite: given.mayWrite ?? (async () => true),
    instructionsOf: async () => given.instructions ?? '',
    models: scripted(given.model ?? (() => [said('ok')]), requests, given),
    ...shared,
    toolbox: new Toolbox({
      ...shared,
      sources: () => sources,
      ownerOf: async () => 'local',
      find: given.find,
      hasPrograms: given.programs !== undefined
    }),
    programs: given.programs,
    options: { limits: { maxSteps: 20 }, maxHistoryTokens: 10_000, network: 'none', ...options },
    publish: () => {},
    live: given.live ?? (() => {})
  }
  const { contents } = deps
  const chat = new Chat(deps)
  await chat.begin('s1', 'demo/demo')
  const log: FakeChat['log'] = (sessionId = 's1') => store.events.read(sessionId)
  return {
    chat,
    store,
    contents,
    requests,
    log,
    async until(type, fits = () => true) {
      const until = performance.now() + PATIENCE_MS
      for (;;) {
        const found = (await log()).find((event) => event.type === type && fits(event.data))
        if (found) return found
        if (performance.now() > until)
          throw new Error(`No ${type}: ${JSON.stringify((await log()).map((event) => [event.type, event.data]))}`)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
    async close() {
      await chat.stop()
      if (!given.on) await store.close()
      discard(dataDir)
    }
  }
}

export function said(text: string): StepEvent {
  return { type: 'done', parts: [{ type: 'text', text }], finish: 'stop', usage: { inputTokens: 10, outputTokens: 1 } }
}

export function called(name: string, args = '{}', callId = `call-${name}`): StepEvent {
  const parts = [{ type: 'tool-call' as const, callId, name, args }]
  return { type: 'done', parts, finish: 'tool-calls', usage: { inputTokens: 10, outputTokens: 1 } }
}

function scripted(script: Script, requests: StepRequest[], given: FakeChatOptions): Models {
  const demo = createModels({ logger: silentLogger, provider: 'demo' })
  return {
    async catalog() {
      const catalog = await demo.catalog()
      const limits = given.contextTokens ?? {}
      return { ...catalog, models: catalog.models.map((model) => ({ ...model, contextTokens: limits[model.id] })) }
    },
    resolve: (requested) => demo.resolve(requested),
    prove: async () => {},
    costOf: given.costOf ?? (() => undefined),
    async *step(request) {
      requests.push(request)
      yield* script(request, requests.length - 1)
    }
  }
}

function fakeSessions(store: Store, events: EventLog, workspace: FakeChatOptions['workspace']): ChatDeps['sessions'] {
  return {
    attach: () => () => {},
    openSaved: async () => fakeCheckpoint(),
    async hold(sessionId, job) {
      const taken = await store.sessions.acquire(sessionId, 'here', 60_000)
      if (!taken.granted) throw new AppError('conflict', 'session_busy', 'busy')
      return job(holdOf(events, sessionId, taken.record.epoch, workspace))
    }
  }
}

function holdOf(
  events: EventLog,
  sessionId: string,
  epoch: number,
  workspace: FakeChatOptions['workspace']
): HeldSession {
  const open = () => {
    if (workspace) return workspace(events, epoch)
    throw new AppError('unavailable', 'engine_unavailable', 'There is no engine in this test.')
  }
  return {
    epoch,
    workspace: async () => open(),
    runTool: async (call) => open().runTool(call),
    forks: noForks(),
    async journal(callId, run, times = 1) {
      const key = onceKey('started', callId, times)
      await events.append(sessionId, [{ type: 'tool:started', data: { callId }, key }], { epoch })
      const { content, isError = false } = await run()
      await events.append(sessionId, [resultOf(callId, { isError, content })], { epoch })
      return { content }
    }
  }
}
