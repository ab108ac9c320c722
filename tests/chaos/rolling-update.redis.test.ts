/** An update of two instances, one after the other, while people work: on a cluster, as its Deployment does it. */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { StoredEvent } from '../../server/storage/event-log.ts'
import type { Store } from '../../server/storage/store.ts'
import { whichCluster } from '../fixtures/kubernetes/which-cluster.ts'
import { type Client, connectClient } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { textOf } from '../support/text-of.ts'
import { startClusterGround } from './cluster-ground.ts'
import { type Ground, openWorld } from './world.ts'

const PEOPLE = 3
let ground: Ground

beforeAll(async () => {
  ground = await startClusterGround()
})
afterAll(() => ground.dispose())

/** Works without a pause: one command after the other, each of which leaves a line in a file. */
class Person {
  readonly id = `update-${randomUUID()}`
  readonly #client: Client
  readonly #store: Store
  lines = 0

  constructor(url: string, store: Store) {
    this.#store = store
    this.#client = connectClient(url, this.id, { browser: randomUUID() + randomUUID(), reconnects: true })
    const approve = ({ callId }: { callId: string }) => this.#ask('tool:approval', { callId, approved: true })
    this.#client.socket.on('tool:approval_required', approve)
    this.#client.socket.on(
      'session:snapshot',
      ({ pendingApprovals = [] }: { pendingApprovals?: { callId: string }[] }) =>
        Promise.all(pendingApprovals.map(approve))
    )
  }

  get reconnects(): number {
    return this.#client.all('system:ready').length - 1
  }

  /** Resolves to the text of the result. */
  async run(command: string): Promise<string> {
    const message = { text: `run ${command}`, id: randomUUID() }
    // As the page does: a message whose answer is lost is sent again.
    const isSent = async () => (await this.#ask('message', message))?.ok === true
    await eventually('the message is accepted', isSent, 4 * PATIENCE_MS)
    let turn: StoredEvent[] = []
    const hasEnded = async () => {
      const events = await this.events()
      const begun = events.findIndex(({ type, data }) => type === 'user:message' && data.text === message.text)
      turn = events.slice(begun)
      return turn.some(({ type }) => type === 'turn:end')
    }
    await eventually('the turn has ended', hasEnded, 4 * PATIENCE_MS)
    return textOf(turn.find(({ type }) => type === 'tool:result')?.data)
  }

  async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.lines += 1
      await this.run(`sleep 0.2; echo line ${this.lines} >> lines`)
    }
  }

  async events(): Promise<StoredEvent[]> {
    const all: StoredEvent[] = []
    for (;;) {
      const page = await this.#store.events.read(this.id, { after: all.length })
      if (page.length === 0) return all
      all.push(...page)
    }
  }

  close(): void {
    this.#client.close()
  }

  async #ask(command: string, payload: object): Promise<{ ok: boolean } | undefined> {
    const { socket } = this.#client
    return socket.connected
      ? socket
          .timeout(PATIENCE_MS)
          .emitWithAck(command, payload)
          .catch(() => undefined)
      : undefined
  }
}

it(`is a reconnect for everyone, and nothing else, on ${whichCluster(process.env)}`, { timeout: 400_000 }, async () => {
  const world = await openWorld(ground, { env: { PAUSE_AFTER_SECONDS: '60' } })
  const store = await world.openStore()
  const people = Array.from({ length: PEOPLE }, () => new Person(world.front.url, store))
  const stopping = new AbortController()
  try {
    for (const person of people) await person.run('echo before > lines')
    const working = Promise.all(people.map((person) => person.work(stopping.signal)))
    working.catch(() => {})
    const everyoneWorks = async () => {
      const from = people.map(({ lines }) => lines)
      const isAhead = () => people.every(({ lines }, index) => lines > (from[index] ?? 0) + 1)
      await eventually('everyone goes on with their work', isAhead, 2 * PATIENCE_MS)
    }
    await everyoneWorks()
    for (const instance of world.instances) {
      await instance.end('SIGTERM')
      await instance.start()
      await everyoneWorks()
    }
    stopping.abort()
    await working
    for (const person of people) {
      const expected = ['before', ...Array.from({ length: person.lines }, (_, n) => `line ${n + 1}`)]
      expect((await person.run('cat lines')).split('\n').filter((line) => /^(before|line \d+)$/.test(line))).toEqual(
        expected
      )
      const events = await person.events()
      expect(events.filter(({ type }) => type === 'agent:error').map(({ data }) => data)).toEqual([])
      expect(events.filter(({ data }) => data.outcome !== undefined).map(({ data }) => data)).toEqual([])
      expect(person.reconnects).toBeGreaterThan(0)
    }
  } finally {
    stopping.abort()
    for (const person of people) person.close()
    await store.close()
    await world.close()
  }
})
