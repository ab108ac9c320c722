/** Two instances of the chat on one store, and the four vendors. The instances can be restarted and killed. Their containers are objects. */
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
import { type FakeSessions, fakeSessions } from '../../server/sessions/sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../server/sessions/sandboxes/session-manager.ts'
import type { ChatDeps } from '../../server/sessions/turns/chat-options.ts'
import { Toolbox } from '../../server/sessions/turns/toolbox.ts'
import { handleCommand } from '../../server/socket/handle-command.ts'
import type { Checkpoint } from '../../server/storage/checkpoint-store.ts'
import type { StoredEvent } from '../../server/storage/event-log.ts'
import { FakeContentStore } from '../../server/storage/fake-content-store.ts'
import type { Store } from '../../server/storage/store.ts'
import { leaseLost } from '../../server/storage/store-errors.ts'
import type { ScriptedReply } from '../fixtures/model-servers/model-reply.ts'
import type { ScriptedServer } from '../fixtures/model-servers/scripted-server.ts'
import { WIRES } from '../fixtures/model-servers/wires.ts'
import type { VendorName } from './request-rules.ts'
import type { VendorMind } from './vendor-mind.ts'

const POLICY = createPolicy([{ glob: 'desk/read', rule: 'allow' }])
const OPTIONS = {
  acquireTimeoutMs: 200,
  orphanGraceMs: 0,
  leaseMs: 60_000,
  maxSessions: 10_000,
  maxSandboxesPerOwner: 10_000
}
const ALIVE_MS = 3_600_000

interface Instance {
  chat: Chat
  sessions: SessionManager
  holder: string
  /** From now on nothing that it does reaches the store, the files or a container. */
  die(): void
}

export class House {
  /** By the session that they answer: an instance that was killed may still send a request of an earlier one. */
  readonly minds = new Map<string, VendorMind>()
  source: ToolSource | undefined
  listen: (events: StoredEvent[]) => void = () => {}
  readonly models: Models
  readonly #fake: FakeSessions
  readonly #servers: ScriptedServer[]
  readonly #instances: Instance[] = []
  #count = 0

  private constructor(fake: FakeSessions, servers: ScriptedServer[]) {
    this.#fake = fake
    this.#servers = servers
    fake.publish = (events) => this.listen(events)
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
  }

  static async open(): Promise<House> {
    const answers: ((reply: Parameters<VendorMind['answer']>[1]) => ScriptedReply)[] = []
    const servers = await Promise.all(
      WIRES.map(({ start }, at) => start({ otherwise: (request) => answers[at]?.(request) ?? { status: 400 } }))
    )
    const house = new House(await fakeSessions(), servers)
    for (let at = 0; at < 2; at++) house.#instances.push(await house.#start())
    for (const { name } of WIRES)
      answers.push((request) => {
        const [sessionId = ''] = /s-\d+/.exec(JSON.stringify(request.body)) ?? []
        return house.minds.get(sessionId)?.answer(name as VendorName, request) ?? { status: 400 }
      })
    return house
  }

  get store(): Store {
    return this.#fake.store
  }

  /** The chat of one of the instances. */
  chat(at: number): Chat {
    return this.#instance(at).chat
  }

  /** Sends a command as a client does. Returns the code of a refusal. */
  async command(at: number, sessionId: string, name: CommandName, input: unknown): Promise<string | undefined> {
    return refusal(() => handleCommand(name, input, sessionId, { chat: this.chat(at), models: this.models }))
  }

  /** Writes a file as the person does who uploads it. Returns the code of a refusal. */
  async upload(at: number, sessionId: string, path: string, content: string): Promise<string | undefined> {
    const data = Buffer.from(content).toString('base64')
    return refusal(() =>
      this.#instance(at).sessions.run(sessionId, async (workspace) => {
        await workspace.change({ kind: 'write', path, data, expected: null })
        await workspace.saveFiles()
      })
    )
  }

  /** The session's files as last saved, with their history. */
  saved(sessionId: string): Promise<Checkpoint> {
    return this.#instance(0).sessions.openSaved(sessionId)
  }

  /** No new container can be made meanwhile. */
  async withoutEngine(work: () => Promise<unknown>): Promise<unknown> {
    const { engine } = this.#fake
    engine.createFails = new AppError('unavailable', 'engine_unavailable', 'There is no engine at the moment.')
    try {
      return await work()
    } finally {
      engine.createFails = undefined
    }
  }

  async restart(at: number, sessionId: string, how: 'stop' | 'kill'): Promise<void> {
    const old = this.#instance(at)
    if (how === 'kill') old.die()
    const stopped = old.chat.stop()
    if (how === 'stop') {
      await stopped
      await old.sessions.stop()
    } else {
      stopped.catch(() => {})
      await this.store.sessions.signOff(old.holder)
    }
    this.#instances[at] = await this.#start()
    this.chat(at).attach(sessionId)
  }

  /**
   * Stops the instances and starts others, of which one takes the session and reports the calls that nobody runs any more. Returns the
   * text files in the session's container and how many containers belong to nobody.
   */
  async takeOver(sessionId: string): Promise<{ files: Map<string, string>; strays: number }> {
    const old = [...this.#instances]
    for (const at of [0, 1]) await this.restart(at, sessionId, 'stop')
    for (const { holder } of old) await this.store.sessions.signOff(holder)
    const { sessions } = this.#instance(0)
    const id = await sessions.run(sessionId, async ({ containerId }) => containerId)
    const { containers } = this.#fake.engine
    const bound = new Set((await this.store.sessions.list()).map(({ containerId }) => containerId))
    const strays = [...containers.keys()].filter((each) => !bound.has(each)).length
    return { files: containers.get(id)?.files ?? new Map(), strays }
  }

  async close(): Promise<void> {
    for (const { chat } of this.#instances) await chat.stop()
    await this.#fake.close()
    await Promise.all(this.#servers.map((server) => server.close()))
  }

  #instance(at: number): Instance {
    const instance = this.#instances[at]
    if (!instance) throw new Error('There is no such instance.')
    return instance
  }

  async #start(): Promise<Instance> {
    const holder = `instance-${++this.#count}`
    const { wrap, die } = mortal()
    const { store } = this.#fake
    const sessions = this.#fake.create(holder, OPTIONS, wrap)
    await store.sessions.heartbeat(holder, ALIVE_MS)
    await sessions.sweep()
    const deps: ChatDeps = {
      sessions,
      events: wrap(store.events),
      contents: new FakeContentStore(),
      checkQuota: async () => {},
      mayWrite: async () => true,
      instructionsOf: async () => '',
      models: this.models,
      policy: POLICY,
      guard: createDefinitionGuard(store.keyValues),
      toolbox: new Toolbox({
        sources: () => (this.source ? [this.source] : []),
        ownerOf: async () => 'local',
        policy: POLICY,
        guard: createDefinitionGuard(store.keyValues),
        audit: noAudit,
        logger: silentLogger
      }),
      options: { limits: { maxSteps: 12 }, maxHistoryTokens: 100_000, network: 'none' },
      logger: silentLogger,
      publish: (_, stored) => this.listen(stored),
      live: () => {}
    }
    return { chat: new Chat(deps), sessions, holder, die }
  }
}

async function refusal(work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (error instanceof AppError && error.kind !== 'internal') return error.code
    throw error
  }
}

/** Wraps what an instance uses: once it is dead, nothing that it does has an effect. */
function mortal(): { wrap: <T extends object>(part: T) => T; die: () => void } {
  let isDead = false
  const opened: { close?: () => Promise<void> }[] = []
  const wrap = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (isDead && name !== 'close') throw leaseLost()
          const result: unknown = Reflect.apply(value, target, args)
          if (name !== 'open' && name !== 'connect') return result
          return (result as Promise<object>).then((part) => {
            opened.push(part)
            if (isDead) die()
            return wrap(part)
          })
        }
      }
    })
  const die = () => {
    isDead = true
    for (const part of opened) void part.close?.()
  }
  return { wrap, die }
}

/** Waits a few turns of the event loop or milliseconds. */
export const moment = (ms: number): Promise<void> => delay(ms)
