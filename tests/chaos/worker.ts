/**
 * A person at work while everything shakes: sends messages, answers cards, reloads, gives up turns. Keeps a journal of what it was
 * told, which the checker holds against what is really there. Whether a card gets a yes is written in its command.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Snapshot } from '../../contract/live.ts'
import { type Client, connectClient } from '../support/client.ts'
import { textOf } from '../support/text-of.ts'
import type { Random } from './random.ts'

export interface Journal {
  sessionId: string
  /** Messages that were acknowledged. */
  accepted: string[]
  /** Answers to cards that were acknowledged. */
  decided: Map<string, boolean>
  /** The messages that it took back, by their `seq`, as far as that was acknowledged. */
  rewound: number[]
  reloads: number
}

const ACK_MS = 8_000
const TURN_MS = 12_000
const FINAL_MS = 90_000

export const MARKER = /\bm-[\w-]+-(?:yes|no)\b/g

export class Worker {
  readonly journal: Journal
  readonly #url: string
  readonly #random: Random
  readonly #cookie = randomBytes(32).toString('base64url')
  readonly #name: string
  #client: Client | undefined
  #count = 0

  constructor(url: string, name: string, random: Random) {
    this.#url = url
    this.#name = name
    this.#random = random
    this.journal = { sessionId: `chaos-${name}`, accepted: [], decided: new Map(), rewound: [], reloads: 0 }
  }

  async work(signal: AbortSignal): Promise<void> {
    this.#connect()
    while (!signal.aborted) {
      await this.#act().catch(() => {})
      await delay(this.#random.between(20, 400), undefined, { signal }).catch(() => {})
    }
  }

  /** With everything up again: what is open gets an answer, and the session does as it is told. Resolves to the effects found in it. */
  async finish(): Promise<string[]> {
    const until = Date.now() + FINAL_MS
    for (let last = 'nothing was tried'; Date.now() < until; await delay(200)) {
      try {
        this.#reload()
        const { transcript } = await this.#snapshot()
        if (transcript.turnId !== null) await this.#client?.wait('turn:end', undefined, { ms: TURN_MS })
        const marker = this.#marker('yes')
        return await this.#effects(marker)
      } catch (error) {
        last = error instanceof Error ? error.message : String(error)
      }
      if (Date.now() + 1000 > until) throw new Error(`${this.journal.sessionId} is not usable: ${last.slice(0, 1500)}`)
    }
    throw new Error(`${this.journal.sessionId} is not usable.`)
  }

  close(): void {
    this.#client?.close()
  }

  async #act(): Promise<void> {
    const dice = this.#random.next()
    if (dice < 0.05) return this.#reload()
    if (dice < 0.1) return void (await this.#ask('turn:cancel', {}))
    if (dice < 0.15) return this.#rewind()
    const commands = Array.from({ length: dice < 0.3 ? 2 : 1 }, () => {
      const marker = this.#marker(this.#random.chance(0.8) ? 'yes' : 'no')
      const pause = this.#random.chance(0.3) ? 'sleep 0.3; ' : ''
      return `run ${pause}echo ${marker} >> runs.txt`
    })
    const from = this.#client?.seen.length ?? 0
    if (await this.#send(commands.join('\n'))) {
      await this.#client?.wait('turn:end', undefined, { from, ms: TURN_MS })
    }
  }

  /** Takes back a message, with another one in its place or without. Only the conversation goes back: what ran has happened. */
  async #rewind(): Promise<void> {
    const seqs = this.#client?.all('user:message').map(({ seq }) => Number(seq)) ?? []
    if (seqs.length === 0) return
    const from = this.#random.pick(seqs.slice(-4))
    const text = this.#random.chance(0.5) ? `run echo ${this.#marker('yes')} >> runs.txt` : undefined
    const id = randomBytes(8).toString('hex')
    const { ok } = await this.#ask('history:rewind', { from, ...(text !== undefined && { message: { text, id } }) })
    if (ok) this.journal.rewound.push(from)
    if (ok && text !== undefined) this.journal.accepted.push(text)
  }

  async #effects(marker: string): Promise<string[]> {
    const client = this.#client
    const from = client?.seen.length ?? 0
    if (!client || !(await this.#send(`run echo ${marker} >> runs.txt; cat runs.txt`))) throw new Error('not accepted')
    const result = await client.wait('tool:result', (data) => textOf(data).includes(marker), { from, ms: TURN_MS })
    await client.wait('turn:end', undefined, { from, ms: TURN_MS })
    return textOf(result).match(MARKER) ?? []
  }

  async #send(text: string): Promise<boolean> {
    const { ok } = await this.#ask('message', text)
    if (ok) this.journal.accepted.push(text)
    return ok
  }

  async #ask(command: string, payload: unknown): Promise<{ ok: boolean; error?: { code: string } }> {
    const socket = this.#client?.socket
    if (!socket?.connected) throw new Error('not connected')
    return socket.timeout(ACK_MS).emitWithAck(command, payload)
  }

  #marker(answer: 'yes' | 'no'): string {
    return `m-${this.#name}-${++this.#count}-${answer}`
  }

  #reload(): void {
    this.#client?.close()
    this.journal.reloads++
    this.#connect()
  }

  #connect(): void {
    const client = connectClient(this.#url, this.journal.sessionId, { browser: this.#cookie, reconnects: true })
    this.#client = client
    const answer = (card: { callId?: unknown; args?: unknown }) => void this.#decide(client, card).catch(() => {})
    client.socket.on('tool:approval_required', answer)
    client.socket.on('session:snapshot', ({ pendingApprovals }: Snapshot) => pendingApprovals.forEach(answer))
  }

  async #decide(client: Client, { callId, args }: { callId?: unknown; args?: unknown }): Promise<void> {
    if (typeof callId !== 'string') return
    const approved = !/-no\b/.test(JSON.stringify(args))
    const { ok } = await client.socket.timeout(ACK_MS).emitWithAck('tool:approval', { callId, approved })
    if (ok) this.journal.decided.set(callId, approved)
  }

  async #snapshot(): Promise<Snapshot> {
    if (!this.#client) throw new Error('not connected')
    return this.#client.snapshot()
  }
}
