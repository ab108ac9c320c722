/**
 * One conversation at random: a person writes, decides, stops, retries, switches models and modes, reviews, reverts, uploads and reloads,
 * while the vendor cuts, hangs and fails and the servers are restarted. Afterwards every request must have been valid, every page must
 * show what the log says, and the files must be what the decisions made of them.
 */
import { isDeepStrictEqual } from 'node:util'
import type { CommandName } from '../../contract/commands.ts'
import type { SessionEvent } from '../../contract/events.ts'
import {
  applyEvent,
  type CallEntry,
  emptyTranscript,
  pendingCalls,
  type Transcript
} from '../../contract/transcript.ts'
import type { ToolSource } from '../../server/calls/tool-source.ts'
import { type Random, seededRandom } from '../chaos/random.ts'
import { WIRES } from '../fixtures/model-servers/wires.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { brokenEffects, Effects } from './effects.ts'
import { FakePage, sent } from './fake-page.ts'
import { type House, moment } from './house.ts'
import { VendorMind } from './vendor-mind.ts'

export interface Report {
  seed: number
  violations: string[]
  requests: number
  events: number
  /** How often each thing was done, and how often it was refused. */
  done: Record<string, number>
}

type State = 'idle' | 'waiting' | 'hanging' | 'running'
type Act = () => Promise<unknown>

/** The actions that are possible in each state, with their weights. */
const HABITS: Record<State, Record<string, number>> = {
  idle: {
    ...{ message: 70, retry: 25, keep: 9, fresh: 4, reset: 3, reload: 5, restart: 4, rewind: 10, change: 10 },
    ...{ mode: 15, review: 20, revert: 10, upload: 8, restore: 12 }
  },
  waiting: {
    approve: 50,
    reject: 15,
    edit: 10,
    remember: 4,
    stop: 8,
    keep: 3,
    message: 3,
    restart: 4,
    kill: 3,
    rewind: 4,
    upload: 8,
    mode: 2,
    revert: 2
  },
  hanging: { stop: 55, restart: 15, kill: 12, keep: 8, reset: 4, message: 3, retry: 3, change: 6 },
  running: {
    stop: 45,
    restart: 10,
    kill: 8,
    reload: 10,
    retry: 8,
    message: 8,
    keep: 6,
    nothing: 5,
    rewind: 4,
    change: 4,
    upload: 4,
    mode: 2,
    review: 3,
    refuse: 5
  }
}
const SAID = ['Hello', 'And 🧭 now?', 'Half: \ud83e', '漢字\n\n```\ncode', 'Please read it.', 'Once more']
const OUTPUTS = ['', 'ok', '\ud83d half', 'x'.repeat(3000), '{"a":1}', '🧭'.repeat(50), '\u0000\u001b[31mred']

class Conversation {
  readonly mind: VendorMind
  readonly done: Record<string, number> = {}
  readonly runs = new Map<string, number>()
  readonly #house: House
  readonly #id: string
  readonly #random: Random
  readonly #pages: FakePage[]
  readonly #effects: Effects
  #ending: { files: ReadonlyMap<string, string>; strays: number } = { files: new Map(), strays: 0 }

  constructor(house: House, seed: number) {
    this.#house = house
    this.#id = `s-${seed}`
    this.#random = seededRandom(seed)
    this.mind = new VendorMind(this.#random)
    this.#effects = new Effects(house, this.#id, this.#random)
    this.#pages = [0, 1].map((at) => new FakePage(() => house.chat(at).transcript(this.#id)))
    house.minds.set(this.#id, this.mind)
    house.source = this.#desk()
    house.listen = (events) => {
      for (const page of this.#pages) page.publish(events)
    }
  }

  async hold(model: string): Promise<void> {
    for (const at of [0, 1]) this.#house.chat(at).attach(this.#id)
    await this.#house.chat(0).begin(this.#id, model)
    for (const page of this.#pages) await page.connect()
    const steps = 12 + Math.floor(this.#random.between(0, 20))
    await this.#act('mode')
    await this.#act('message')
    for (let step = 0; step < steps; step++) {
      const state = this.#random.chance(0.2) ? await this.#soon() : await this.#settled()
      await this.#act(pick(this.#random, HABITS[state]))
      if (this.#random.chance(0.1)) this.#random.pick(this.#pages).disconnect()
      if (this.#random.chance(0.3)) await this.#reconnect()
    }
    for (;;) {
      const state = await this.#settled()
      if (state !== 'idle') await this.#act(state === 'waiting' ? 'reject' : 'stop')
      else if ((await this.#transcript()).review) await this.#act('reject all')
      else break
    }
    this.#ending = await this.#house.takeOver(this.#id)
    await this.#reconnect()
  }

  async #reconnect(): Promise<void> {
    for (const page of this.#pages) if (!page.isOnline) await page.connect()
  }

  async #transcript() {
    return this.#house.chat(0).transcript(this.#id)
  }

  async #state(): Promise<State> {
    const transcript = await this.#transcript()
    if (transcript.turnId === null) return isSettled(transcript) ? 'idle' : 'running'
    if (pendingCalls(transcript).length > 0) return 'waiting'
    return this.mind.isHanging ? 'hanging' : 'running'
  }

  async #soon(): Promise<State> {
    await moment(this.#random.between(0, 15))
    return this.#state()
  }

  async #settled(): Promise<State> {
    const until = performance.now() + PATIENCE_MS
    for (;;) {
      const state = await this.#state()
      if (state !== 'running') return state
      if (performance.now() > until) throw new Error('The turn stands still.')
      await moment(4)
    }
  }

  async #act(name: string): Promise<void> {
    const at = this.#random.pick([0, 1])
    const send = (command: CommandName, input: unknown = {}) => this.#house.command(at, this.#id, command, input)
    const transcript = await this.#transcript()
    const [call] = pendingCalls(transcript)
    const effects = this.#effects
    const acts: Record<string, Act> = {
      message: () => send('message', { text: `${this.#random.pick(SAID)} (${this.#id})` }),
      retry: () => send('turn:retry'),
      stop: () => send('turn:cancel'),
      reset: () => send('history:reset'),
      rewind: async () => send('history:rewind', { from: await this.#anyEntry() }),
      restore: () => {
        const rewind = transcript.entries.findLast((entry) => entry.kind === 'rewound' && !entry.undone)
        return send('history:restore', { of: rewind?.seq ?? 1 })
      },
      change: async () =>
        send('history:rewind', { from: await this.#anyEntry(), message: `Changed: ${this.#random.pick(SAID)}` }),
      keep: () => this.#switch(send, 'keep'),
      fresh: () => this.#switch(send, 'fresh'),
      reload: () => this.#random.pick(this.#pages).connect(),
      restart: () => this.#house.restart(at, this.#id, 'stop'),
      kill: () => this.#house.restart(at, this.#id, 'kill'),
      mode: () => effects.selectMode(send),
      upload: () => effects.upload(at),
      revert: () => effects.revert(send),
      review: () => effects.review(send, transcript),
      'reject all': () => effects.review(send, transcript, 'none'),
      refuse: () => this.#house.withoutEngine(() => moment(this.#random.between(1, 30))),
      approve: () => effects.approve(send, call),
      remember: () => effects.approve(send, call, { remember: true }),
      edit: () =>
        send('tool:approval', decision(call, { approved: true, args: { ...call?.args, path: 'edited \ud83e' } })),
      reject: () => send('tool:approval', decision(call, { approved: false, reason: 'No 🧭.' }))
    }
    const refusal = await acts[name]?.()
    const what = typeof refusal === 'string' ? `${name} (${refusal})` : name
    this.done[what] = (this.done[what] ?? 0) + 1
  }

  /** A message, an answer or a call, however old; some are refused. */
  async #anyEntry(): Promise<number> {
    const { entries } = await this.#transcript()
    const recent = entries.filter(({ kind }) => kind === 'user' || kind === 'agent' || kind === 'call').slice(-12)
    return recent.length === 0 ? 1 : this.#random.pick(recent).seq
  }

  async #switch(send: (command: CommandName, input: unknown) => Promise<unknown>, history: string): Promise<unknown> {
    const { model } = this.#random.pick(WIRES)
    const before = (await this.#transcript()).model
    const refusal = await send('model:select', { model, history })
    if (model !== before) this.mind.switched()
    return refusal
  }

  #desk(): ToolSource {
    const inputSchema = { type: 'object' }
    return {
      server: 'desk',
      list: async () => ['read', 'write'].map((name) => ({ name, description: `Can ${name}.`, inputSchema })),
      call: async ({ callId, signal }) => {
        this.runs.set(callId, (this.runs.get(callId) ?? 0) + 1)
        if (this.#random.chance(0.3)) await moment(this.#random.between(1, 30))
        if (this.#random.chance(0.1)) signal?.throwIfAborted()
        if (this.#random.chance(0.1)) throw new Error('The desk is broken.')
        return { content: [{ type: 'text', text: this.#random.pick(OUTPUTS) }], isError: this.#random.chance(0.1) }
      }
    }
  }

  async check(): Promise<{ violations: string[]; events: number }> {
    const violations = [...this.mind.violations]
    const log: SessionEvent[] = []
    for (let page = await this.#read(0); page.length > 0; page = await this.#read(log.length)) log.push(...page)
    const folded = sent(log.reduce(applyEvent, emptyTranscript()))
    for (const page of this.#pages)
      if (!isDeepStrictEqual(sent(page.transcript), folded)) violations.push(difference(page.transcript, folded))
    for (const [callId, times] of this.runs) if (times > 1) violations.push(`the call ${callId} ran ${times} times`)
    for (const { callId, startedAt, result } of Object.values(folded.calls))
      if (startedAt !== undefined && !result) violations.push(`the call ${callId} has no result`)
    violations.push(...rewindsOf(log, folded))
    const saved = await this.#house.saved(this.#id)
    const { uploaded } = this.#effects
    violations.push(...brokenEffects({ log, transcript: folded, saved, uploaded, ...this.#ending }))
    await saved.close()
    const ends = log.flatMap(({ type, data }) => (type === 'turn:end' ? [data.turnId] : []))
    if (new Set(ends).size !== ends.length) violations.push('a turn ended twice')
    return { violations, events: log.length }
  }

  async #read(after: number): Promise<SessionEvent[]> {
    return (await this.#house.store.events.read(this.#id, { after })) as SessionEvent[]
  }
}

export async function converse(house: House, seed: number): Promise<Report> {
  const conversation = new Conversation(house, seed)
  const { mind, done } = conversation
  const model = WIRES[seed % WIRES.length]?.model ?? ''
  let failure: string[] = []
  try {
    await conversation.hold(model)
  } catch (error) {
    failure = [`it broke off: ${error instanceof Error ? error.stack : String(error)}`]
  }
  const { violations, events } = await conversation.check()
  return { seed, violations: [...failure, ...violations], requests: mind.requests, events, done }
}

/** Nothing is left for the servers to do: no call that was kept, no review that opens or is applied. */
function isSettled({ calls, forkedTurn, unapplied }: Transcript): boolean {
  const isKept = ({ preview, decision, result }: CallEntry) => preview && decision?.approved && !result
  return forkedTurn === null && unapplied === null && !Object.values(calls).some(isKept)
}

function decision(call: CallEntry | undefined, answer: object): object {
  return { callId: call?.callId ?? 'none', hash: call?.preview?.hash ?? call?.hash, ...answer }
}

/**
 * Entries that were taken back are crossed out and stay in the log, those of a rewind that was undone count again. Events of a turn that a
 * rewind ended no longer count.
 */
function rewindsOf(log: SessionEvent[], { entries }: Transcript): string[] {
  const undone = new Set(log.flatMap(({ type, data }) => (type === 'history:restored' ? [data.of] : [])))
  const rewinds = log.flatMap((event) => (event.type === 'history:rewound' ? [event] : []))
  const last = rewinds.findLast(({ seq }) => !undone.has(seq))
  const isTaken = (seq: number) =>
    rewinds.some((rewind) => !undone.has(rewind.seq) && seq >= rewind.data.from && seq < rewind.seq)
  const gone = entries.filter(({ seq, rewound, kind }) => rewound && kind === 'user' && !isTaken(seq))
  const from = last?.data.from ?? Number.POSITIVE_INFINITY
  const missed = entries.filter(
    ({ seq, kind, rewound }) =>
      !rewound && seq >= from && seq < (last?.seq ?? 0) && (kind === 'user' || kind === 'agent' || kind === 'call')
  )
  const lost = log.filter(({ type, seq }) => type === 'user:message' && !entries.some((entry) => entry.seq === seq))
  return [
    ...missed.map(({ seq }) => `the entry ${seq} was taken back and is not crossed out`),
    ...lost.map(({ seq }) => `the message ${seq} is not shown`),
    ...gone.map(({ seq }) => `the message ${seq} is crossed out, and no rewind that counts took it back`)
  ]
}

function pick(random: Random, weights: Record<string, number>): string {
  const all = Object.entries(weights).flatMap(([name, weight]) => Array.from({ length: weight }, () => name))
  return random.pick(all)
}

function difference(page: object, log: object): string {
  const fields = Object.keys(log).filter((key) => !isDeepStrictEqual(Reflect.get(page, key), Reflect.get(log, key)))
  const show = (of: object) => JSON.stringify(fields.map((field) => [field, Reflect.get(of, field)])).slice(0, 3000)
  return `a page does not show the log: ${show(page)} instead of ${show(log)}`
}
