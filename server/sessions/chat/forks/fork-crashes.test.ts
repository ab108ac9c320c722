import { expect, it } from 'vitest'
import type { ApprovalMode } from '../../../../contract/effects/modes.ts'
import { PATIENCE_MS } from '../../../../tests/support/patience-ms.ts'
import type { StoredEvent } from '../../../storage/event-log.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

/** The steps at which a process may die: everything that it does to containers, checkpoints and the log. */
const STEPS = new Set(['create', 'connect', 'remove', 'claim', 'callTool', 'restore', 'changes', 'commit', 'append'])

/** Dies before its n-th step: from then on nothing that it does has an effect. */
class Mortal {
  steps: string[] = []
  isDead = false
  readonly #diesAt: number

  constructor(diesAt: number) {
    this.#diesAt = diesAt
  }

  readonly wrap = <T extends object>(part: T): T =>
    new Proxy(part, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (this.#dies(String(name))) throw new Error(`killed at ${String(name)}`)
          const result: unknown = Reflect.apply(value, target, args)
          const isOpening = name === 'open' || name === 'connect'
          return isOpening ? (result as Promise<object>).then((opened) => this.wrap(opened)) : result
        }
      }
    })

  #dies(step: string): boolean {
    if (STEPS.has(step) && !this.isDead) {
      this.steps.push(step)
      this.isDead = this.steps.length > this.#diesAt
    }
    return this.isDead
  }
}

interface Life {
  chat: FakeChat
  manager: SessionManager
}

async function live(sessions: FakeSessions, id: string, mode: ApprovalMode, mortal: Mortal): Promise<Life> {
  const manager = sessions.create(id, { orphanGraceMs: 0, leaseMs: 60_000 }, mortal.wrap)
  const model = (request: { messages: { role: string }[] }) => [
    request.messages.at(-1)?.role === 'tool'
      ? said('done')
      : called('write_file', JSON.stringify({ path: 'a.txt', content: 'new' }), 'c1')
  ]
  const chat = await fakeChat({
    model,
    options: { mode },
    on: { store: sessions.store, sessions: manager },
    events: mortal.wrap
  })
  return { chat, manager }
}

const has = (log: StoredEvent[], type: string) => log.some((event) => event.type === type)

/** Does what the person would do next, if anything: keeps a preview or accepts a review. */
async function act({ chat }: Life): Promise<void> {
  const { calls, review, turnId } = await chat.chat.transcript('s1')
  const call = calls.c1
  if (call?.preview && !call.decision)
    await chat.chat.decide('s1', { callId: 'c1', approved: true, hash: call.preview.hash })
  if (review && turnId === null)
    await chat.chat.decideReview('s1', { reviewId: review.reviewId, hash: review.changes.hash, accept: 'all' })
}

async function isOver({ chat }: Life): Promise<boolean> {
  const { turnId, review, forkedTurn, unapplied } = await chat.chat.transcript('s1')
  return has(await chat.log(), 'turn:end') && turnId === null && review === null && !forkedTurn && unapplied === null
}

/** One conversation whose server dies at the given step; returns the steps of the first life. */
async function survive(mode: ApprovalMode, diesAt: number): Promise<string[]> {
  const sessions = await fakeSessions()
  const mortal = new Mortal(diesAt)
  let life = await live(sessions, 'a', mode, new Mortal(Number.POSITIVE_INFINITY))
  await life.chat.close()
  life = await live(sessions, 'a', mode, mortal)
  const first = life
  await sessions.store.sessions.heartbeat('a', 60_000)
  await first.chat.chat.send('s1', { text: 'go' }).catch(() => sessions.store.events.append('s1', message))
  const until = performance.now() + PATIENCE_MS
  while (!(await isOver(life).catch(() => false))) {
    if (performance.now() > until) throw new Error(`Stuck after ${mortal.steps.at(-1)}: ${await story(life)}`)
    if (mortal.isDead && life === first) {
      await first.chat.close()
      await sessions.store.sessions.signOff('a')
      life = await live(sessions, 'b', mode, new Mortal(Number.POSITIVE_INFINITY))
      await life.manager.start()
      life.chat.chat.attach('s1')
    }
    await act(life).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await check(sessions, life)
  await life.chat.close()
  await sessions.close()
  return mortal.steps
}

const message = [{ type: 'user:message', data: { turnId: 't1', text: 'go' }, key: 'turn:1' }]
const story = async ({ chat }: Life) => JSON.stringify((await chat.log()).map(({ type, data }) => [type, data]))

async function check(sessions: FakeSessions, { chat, manager }: Life): Promise<void> {
  const log = await chat.log()
  const applied = log.find(({ type }) => type === 'review:applied')
  const result = log.filter(({ type }) => type === 'tool:result')
  const saved = await manager.openSaved('s1')
  const [record] = await sessions.store.sessions.list()
  const sandbox = sessions.engine.containers.get(record?.containerId ?? '')
  // Applied exactly once or not at all, and the log says which.
  const isKept = applied ? applied.data.changes !== undefined : result[0]?.data.changes !== undefined
  expect([...saved.entries.keys()]).toEqual(isKept ? ['a.txt'] : [])
  expect(sandbox?.files.get('a.txt')).toBe(isKept ? 'new' : undefined)
  expect([...saved.changeSets.values()].filter(({ kind }) => kind === 'open')).toEqual([])
  expect(result).toHaveLength(1)
  await saved.close()
  // The next start finds no fork, wherever the last one was killed.
  await manager.stop().catch(() => {}) // it may have been killed only now
  for (const instance of ['a', 'b']) await sessions.store.sessions.signOff(instance)
  await sessions.create('c', { orphanGraceMs: 0 }).sweep()
  expect([...sessions.engine.containers.values()].filter(({ id }) => id !== record?.containerId)).toEqual([])
}

it.each(['preview', 'review'] as const)(
  'applies once or not at all if the server dies at any step of a %s',
  async (mode) => {
    const steps = await survive(mode, Number.POSITIVE_INFINITY)
    expect(steps).toContain('callTool')
    for (const at of steps.keys()) await survive(mode, at)
  }
)
