/** Two instances of the chat on one store, and the four vendors. The instances can be restarted and killed. There are no containers. */
import { setTimeout as delay } from 'node:timers/promises'
import type { CommandName } from '../../contract/commands.ts'
import { noAudit } from '../../server/audit/audit.fixture.ts'
import type { ToolSource } from '../../server/calls/tool-source.ts'
import { AppError } from '../../server/lib/errors.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { createModels } from '../../server/models/create-models.ts'
import type { Models } from '../../server/models/port.ts'
import { createPolicy } from '../../server/policy/approval-policy.ts'
import { createDefinitionGuard } from '../../server/policy/definition-guard.ts'
import { Chat } from '../../server/sessions/chat/chat.ts'
import { noForks } from '../../server/sessions/sandboxes/forks/no-forks.fixture.ts'
import { journal } from '../../server/sessions/sandboxes/run-sandbox-tool.ts'
import { SessionEvents } from '../../server/sessions/sandboxes/session-events.ts'
import type { HeldSession } from '../../server/sessions/sandboxes/session-manager.ts'
import type { ChatDeps } from '../../server/sessions/turns/chat-options.ts'
import { Toolbox } from '../../server/sessions/turns/toolbox.ts'
import { runCommand } from '../../server/socket/run-command.ts'
import { openEmbeddedStore } from '../../server/storage/embedded/open-embedded-store.ts'
import type { StoredEvent } from '../../server/storage/event-log.ts'
import { fakeCheckpoint } from '../../server/storage/fake-checkpoint.ts'
import { FakeContentStore } from '../../server/storage/fake-content-store.ts'
import type { Store } from '../../server/storage/store.ts'
import { leaseLost } from '../../server/storage/store-errors.ts'
import type { ScriptedReply } from '../fixtures/model-servers/model-reply.ts'
import type { ScriptedServer } from '../fixtures/model-servers/scripted-server.ts'
import { WIRES } from '../fixtures/model-servers/wires.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'
import type { VendorName } from './request-rules.ts'
import type { VendorMind } from './vendor-mind.ts'

const POLICY = createPolicy([{ glob: 'desk/read', rule: 'allow' }])

interface Instance {
  chat: Chat
  holder: string
  /** From now on nothing that it does reaches the store. */
  die(): void
}

export class House {
  /** By the session that they answer: an instance that was killed may still send a request of an earlier one. */
  readonly minds = new Map<string, VendorMind>()
  source: ToolSource | undefined
  listen: (events: StoredEvent[]) => void = () => {}
  readonly store: Store
  readonly models: Models
  readonly #servers: ScriptedServer[]
  readonly #dataDir: string
  readonly #instances: Instance[] = []
  #count = 0
  #epoch = 0

  private constructor(store: Store, dataDir: string, servers: ScriptedServer[]) {
    this.store = store
    this.#dataDir = dataDir
    this.#servers = servers
    const access = WIRES.map((wire, at) => wire.options(servers[at]?.url ?? ''))
    const timeouts = { backoffMs: 1, idleMs: 60_000 }
    const models = createModels({ ...Object.assign({}, ...access), logger: silentLogger, timeouts })
    this.models = {
      catalog: () => models.catalog(),
      step: (request) => models.step(request),
      costOf: (model, usage) => models.costOf(model, usage),
      prove: async () => {},
      resolve: async (id) => id ?? ''
    }
    for (let at = 0; at < 2; at++) this.#instances.push(this.#start())
  }

  static async open(): Promise<House> {
    const dataDir = temporaryFolder()
    const store = await openEmbeddedStore({ dataDir, logger: silentLogger })
    const answers: ((reply: Parameters<VendorMind['answer']>[1]) => ScriptedReply)[] = []
    const servers = await Promise.all(
      WIRES.map(({ start }, at) => start({ otherwise: (request) => answers[at]?.(request) ?? { status: 400 } }))
    )
    const house = new House(store, dataDir, servers)
    for (const { name } of WIRES)
      answers.push((request) => {
        const [sessionId = ''] = /s-\d+/.exec(JSON.stringify(request.body)) ?? []
        return house.minds.get(sessionId)?.answer(name as VendorName, request) ?? { status: 400 }
      })
    return house
  }

  /** The chat of one of the instances. */
  chat(at: number): Chat {
    const instance = this.#instances[at]
    if (!instance) throw new Error('There is no such instance.')
    return instance.chat
  }

  /** Sends a command as a client does. Returns the code of a refusal. */
  async command(at: number, sessionId: string, name: CommandName, input: unknown): Promise<string | undefined> {
    try {
      await runCommand(name, input, sessionId, { chat: this.chat(at), models: this.models })
      return undefined
    } catch (error) {
      if (error instanceof AppError && error.kind !== 'internal') return error.code
      throw error
    }
  }

  async restart(at: number, sessionId: string, how: 'stop' | 'kill'): Promise<void> {
    const old = this.#instances[at]
    if (how === 'kill') old?.die()
    const stopped = old?.chat.stop()
    if (how === 'stop') await stopped
    if (old) await this.store.sessions.signOff(old.holder)
    this.#instances[at] = this.#start()
    this.chat(at).attach(sessionId)
  }

  /** As the next instance does that takes the session: reports the calls that nobody runs any more. */
  async takeOver(sessionId: string): Promise<void> {
    for (const { holder } of this.#instances) await this.store.sessions.signOff(holder)
    await this.#hold('heir', this.store.events, sessionId, async () => {})
  }

  async close(): Promise<void> {
    for (const { chat } of this.#instances) await chat.stop()
    await this.store.close()
    await Promise.all(this.#servers.map((server) => server.close()))
    discard(this.#dataDir)
  }

  #start(): Instance {
    const holder = `instance-${++this.#count}`
    let isDead = false
    const guarded = <T>(work: () => Promise<T>): Promise<T> => (isDead ? Promise.reject(leaseLost()) : work())
    const log = this.store.events
    const events: Store['events'] = {
      ...log,
      append: (id, list, options) => guarded(() => log.append(id, list, options)),
      read: (id, options) => guarded(() => log.read(id, options))
    }
    const publish = (_: string, stored: StoredEvent[]) => this.listen(stored)
    const sources = () => (this.source ? [this.source] : [])
    const deps: ChatDeps = {
      sessions: {
        attach: () => () => {},
        openSaved: async () => fakeCheckpoint(),
        hold: (id, job) => guarded(() => this.#hold(holder, events, id, job))
      },
      events,
      contents: new FakeContentStore(),
      checkQuota: async () => {},
      instructionsOf: async () => '',
      models: this.models,
      policy: POLICY,
      guard: createDefinitionGuard(this.store.keyValues),
      toolbox: new Toolbox({
        sources,
        ownerOf: async () => 'local',
        policy: POLICY,
        audit: noAudit,
        logger: silentLogger
      }),
      options: { limits: { maxSteps: 12 }, maxHistoryTokens: 100_000, network: 'none' },
      logger: silentLogger,
      publish,
      live: () => {}
    }
    return { chat: new Chat(deps), holder, die: () => (isDead = true) }
  }

  async #hold<T>(
    holder: string,
    events: Store['events'],
    sessionId: string,
    job: (hold: HeldSession) => Promise<T>
  ): Promise<T> {
    const { sessions } = this.store
    const taken = await sessions.acquire(sessionId, holder, 60_000)
    if (!taken.granted) throw new AppError('conflict', 'session_busy', 'Another instance has it.')
    const { epoch } = taken.record
    const publish = (_: string, stored: StoredEvent[]) => this.listen(stored)
    const checkpoints = new FakeContentStore()
    const runningCalls = new Set<string>()
    const journaled = {
      epoch,
      events: new SessionEvents({ events, publish, checkpoints, logger: silentLogger }, sessionId),
      runningCalls
    }
    if (epoch !== this.#epoch) await journaled.events.reportInterrupted(epoch, runningCalls)
    this.#epoch = epoch
    const noEngine = async () => {
      throw new AppError('unavailable', 'engine_unavailable', 'There is no engine in this test.')
    }
    try {
      return await job({
        epoch,
        workspace: noEngine,
        runTool: noEngine,
        forks: noForks(),
        journal: (callId, run) => journal(journaled as never, callId, run)
      })
    } finally {
      await sessions.release(sessionId, epoch)
    }
  }
}

/** Waits a few turns of the event loop or milliseconds. */
export const moment = (ms: number): Promise<void> => delay(ms)
