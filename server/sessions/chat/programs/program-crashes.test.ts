/** Kills the instance that runs a program at every event, of its session's log and of its own. Another instance goes on. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { callsOfProgram } from '../../../../contract/programs.ts'
import type { CallEntry } from '../../../../contract/transcript.ts'
import { noAudit } from '../../../audit/audit.fixture.ts'
import type { ToolSource } from '../../../calls/tool-source.ts'
import { type LocalRealm, localRealm } from '../../../code/realms/local-realm.fixture.ts'
import { silentLogger } from '../../../lib/logger.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import { createDefinitionGuard } from '../../../policy/definition-guard.ts'
import type { EventLog } from '../../../storage/event-log.ts'
import { leaseLost } from '../../../storage/store-errors.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import { Toolbox } from '../../turns/toolbox.ts'
import { Chat } from '../chat.ts'
import { called, said } from '../fake-chat.ts'

/** Three reads, two of them at once, two writes that are approved, and one that waits. */
const CODE = `const { ids } = await tools.crm.list()
const [a, b] = await Promise.all(ids.map((id) => tools.crm.read({ id })))
const send = (to) => tools.crm.send({ to }).then(() => 'sent', (error) => error.code)
const said = [await send(a), await send(b)]
console.log('two')
said.push(await send('chief' + Math.random()))
;({ a, b, said, at: Date.now() > 0 })`
const OPTIONS = { acquireTimeoutMs: 200, leaseMs: 60_000, maxSessions: 1000, maxSandboxesPerOwner: 1000 }
const POLICY = createPolicy(['list', 'read'].map((name) => ({ glob: `crm/${name}`, rule: 'allow' as const })))
const inputSchema = { type: 'object' }

let fake: FakeSessions
const chats: Chat[] = []
let count = 0

/** The world outside, which no crash resets. */
class World {
  readonly sessionId = `p${++count}-s`
  readonly sent: string[] = []
  appends = 0
  /** The instance dies at this append, before or after it is stored. */
  dieAt = Number.POSITIVE_INFINITY
  isLate = false
  isDead = false
  /** The container of the program dies, not the server. */
  isOfRealm = false
  realms: LocalRealm[] = []

  instance(isMortal: boolean): Chat {
    const dead = () => isMortal && this.isDead
    const wrap = <T extends object>(part: T): T =>
      new Proxy(part, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name, target)
          if (typeof value !== 'function') return value
          return (...args: unknown[]) => {
            if (dead() && name !== 'close') throw leaseLost()
            const result: unknown = Reflect.apply(value, target, args)
            return name === 'open' || name === 'connect' ? (result as Promise<object>).then(wrap) : result
          }
        }
      })
    const events = isMortal ? this.#counted(wrap(fake.store.events)) : fake.store.events
    const wrapped = <T extends object>(part: T): T =>
      part === fake.store.events ? (events as unknown as T) : wrap(part)
    const holder = `${isMortal ? 'victim' : 'heir'}-${this.sessionId}`
    const sessions = fake.create(holder, OPTIONS, isMortal ? wrapped : undefined)
    const guard = createDefinitionGuard(fake.store.keyValues)
    const shared = { policy: POLICY, guard, logger: silentLogger }
    const model = 'demo/demo'
    const chat = new Chat({
      ...{
        ...shared,
        sessions,
        events,
        contents: fake.checkpoints,
        checkQuota: async () => {},
        mayWrite: async () => true
      },
      instructionsOf: async () => '',
      models: {
        catalog: async () => ({ default: model, models: [], providers: [] }),
        ...{ resolve: async () => model, prove: async () => {}, costOf: () => undefined },
        async *step({ messages }) {
          yield messages.at(-1)?.role === 'tool'
            ? said('over')
            : called('run_code', JSON.stringify({ code: CODE }), 'prog')
        }
      },
      toolbox: new Toolbox({
        ...{ ...shared, audit: noAudit, hasPrograms: true, ownerOf: async () => 'local' },
        sources: () => [this.#crm(dead)]
      }),
      options: { limits: { maxSteps: 20 }, maxHistoryTokens: 10_000, network: 'none' },
      programs: { openRealm: async () => this.#realm(), lingerMs: 2, pollMs: 1 },
      ...{ publish: () => {}, live: () => {} }
    })
    chats.push(chat)
    return chat
  }

  #realm(): LocalRealm {
    const realm = localRealm()
    this.realms.push(realm)
    return realm
  }

  /** Only appends about the program count, in either log. */
  #counted(events: EventLog): EventLog {
    const append: EventLog['append'] = async (id, added, options) => {
      if (!id.includes(this.sessionId)) return events.append(id, added, options)
      if (this.isDead) throw leaseLost()
      if (++this.appends === this.dieAt && this.isOfRealm) this.realms.at(-1)?.kill()
      else if (this.appends === this.dieAt) {
        if (this.isLate) await events.append(id, added, options)
        this.isDead = true
        throw leaseLost()
      }
      return events.append(id, added, options)
    }
    return new Proxy(events, { get: (target, name) => (name === 'append' ? append : Reflect.get(target, name)) })
  }

  #crm(dead: () => boolean): ToolSource {
    return {
      server: 'crm',
      list: async () => [
        { name: 'list', inputSchema, annotations: { readOnlyHint: true } },
        { name: 'read', inputSchema, annotations: { readOnlyHint: true } },
        { name: 'send', inputSchema }
      ],
      call: async ({ name, args }) => {
        if (dead()) throw leaseLost()
        if (name === 'list') return { content: [], structuredContent: { ids: ['x', 'y'] } }
        if (name === 'read') return { content: [{ type: 'text', text: `${args.id}@example.test` }] }
        this.sent.push(String(args.to))
        return { content: [{ type: 'text', text: 'sent' }] }
      }
    }
  }

  async calls(chat: Chat): Promise<CallEntry[]> {
    return callsOfProgram((await chat.transcript(this.sessionId)).calls, 'prog')
  }

  /** Approves everything; what may have run before only if it did not. Returns when the turn is over or the instance is dead. */
  async person(chat: Chat, isOver: () => boolean): Promise<void> {
    for (let looks = 0; looks < 4000 && !isOver(); looks++) {
      const transcript = await chat.transcript(this.sessionId)
      if (transcript.turns > 0 && transcript.turnId === null) return
      for (const { callId, hash, decision, args, program } of await this.calls(chat)) {
        if (decision) continue
        const approved = program?.warning === undefined || !this.sent.includes(String(args.to))
        await chat.decide(this.sessionId, { callId, hash, approved }).catch(() => {})
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    if (!isOver()) throw new Error(`The turn of ${this.sessionId} does not end.`)
  }

  async begin(chat: Chat): Promise<void> {
    await chat.begin(this.sessionId, 'demo/demo')
    await chat.send(this.sessionId, { text: 'go', id: undefined })
  }

  async result(): Promise<{ value?: { a: string; said: string[] }; logs?: string }> {
    const stored = await fake.store.events.read(this.sessionId)
    const results = stored.filter(({ type, data }) => type === 'tool:result' && data.callId === 'prog')
    expect(results).toHaveLength(1)
    const [part] = (results[0]?.data.content ?? []) as { text: string }[]
    return JSON.parse(part?.text ?? '{}')
  }
}

beforeAll(async () => {
  fake = await fakeSessions()
})
afterAll(async () => {
  await Promise.all(chats.map((chat) => chat.stop().catch(() => {})))
  await fake.close()
})

async function killedAt(dieAt: number, isLate: boolean): Promise<World> {
  const world = new World()
  Object.assign(world, { dieAt, isLate })
  const victim = world.instance(true)
  await world.begin(victim).catch(() => {})
  await world
    .person(victim, () => world.isDead)
    .catch((error) => {
      if (!world.isDead) throw error
    })
  void victim.stop().catch(() => {})
  await fake.store.sessions.signOff(`victim-${world.sessionId}`)
  const heir = world.instance(false)
  // Nothing was sent yet: the person sends the message again.
  if ((await heir.transcript(world.sessionId)).turns === 0) await world.begin(heir)
  const leave = heir.attach(world.sessionId)
  await world.person(heir, () => false)
  leave()
  return world
}

async function checkWorld(world: World, where: string): Promise<void> {
  const { sessionId, sent } = world
  expect(new Set(sent).size, where).toBe(sent.length)
  expect(sent.slice(0, 2), where).toEqual(['x@example.test', 'y@example.test'])
  expect(sent, where).toHaveLength(3)
  const { value, logs } = await world.result()
  expect(value, where).toMatchObject({ a: 'x@example.test', b: 'y@example.test' })
  // A person who finds that the interrupted call took effect rejects it, and the program is told that nobody knows.
  for (const said of value?.said ?? ['none']) expect(['sent', 'outcome_unknown'], where).toContain(said)
  expect(logs, where).toBe('two')
  expect(await fake.store.events.read(`code-run:chat-${sessionId}`), where).toEqual([])
  const calls = Object.values((await chats.at(-1)?.transcript(sessionId))?.calls ?? {})
  for (const { result, decision } of calls) expect(result ?? decision?.approved === false, where).toBeTruthy()
  // A call is unknown only if the program did not get its result, so that it was asked about again.
  const last = new Map(
    callsOfProgram(Object.fromEntries(calls.map((call) => [call.callId, call])), 'prog').map((call) => [
      call.program?.n,
      call
    ])
  )
  for (const { result } of last.values()) expect(result?.outcome, where).toBeUndefined()
}

// Checked: if a call that was under way is sent again without asking, writes are there twice.
it('keeps each write once and comes to the same result, wherever the server is killed', async () => {
  const reference = await killedAt(Number.POSITIVE_INFINITY, false)
  await checkWorld(reference, 'not killed')
  const positions = reference.appends
  expect(positions).toBeGreaterThan(30)
  for (const isLate of [false, true])
    for (let at = 1; at <= positions; at++)
      await checkWorld(await killedAt(at, isLate), `killed ${isLate ? 'after' : 'at'} append ${at}`)
}, 240_000)

it('goes on in another container if that of the program is killed, and repeats no call', async () => {
  const positions = (await killedAt(Number.POSITIVE_INFINITY, false)).appends
  for (let at = 1; at <= positions; at++) {
    const world = new World()
    Object.assign(world, { dieAt: at, isOfRealm: true })
    const chat = world.instance(true)
    await world.begin(chat)
    await world.person(chat, () => false)
    await checkWorld(world, `container killed at append ${at}`)
    expect((await world.result()).value?.said, `at ${at}`).toEqual(['sent', 'sent', 'sent'])
    expect(new Set((await world.calls(chat)).map(({ program }) => program?.n)).size).toBe(6)
    expect(await world.calls(chat)).toHaveLength(6)
  }
}, 240_000)
