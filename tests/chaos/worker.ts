/**
 * A person at work while everything shakes: sends messages, uploads files, answers cards, switches modes, reviews, undoes, branches,
 * reloads, gives up turns. Keeps a journal of what it was told, which the checker holds against what is really there. The command of a card, and the name of a
 * file in a review, says whether it gets approved. Each command leaves its mark in a file of its own, so that it can be accepted and undone alone.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { RevertPlanReply } from '../../contract/effects/effect-replies.ts'
import { APPROVAL_MODES } from '../../contract/effects/modes.ts'
import type { Snapshot } from '../../contract/live.ts'
import { browserOf } from '../support/browser-owner.ts'
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
  /** The sessions that it branched off. */
  branches: string[]
  /** The marks that it uploaded, with those that failed, and those that were acknowledged. */
  tried: string[]
  uploaded: string[]
  /** How many previews it kept, reviews it decided and versions it undid, as far as that was acknowledged. */
  kept: number
  reviewed: number
  undone: number
  reloads: number
}

const ACK_MS = 8_000
const TURN_MS = 12_000
const FINAL_MS = 90_000

export const MARKER = /\bm-[\w-]+-(?:yes|no)\b/g
const FOLDER = 'marks'

const leave = (marker: string) => `mkdir -p ${FOLDER}; echo ${marker} >> ${FOLDER}/${marker}`

type Review = NonNullable<Snapshot['transcript']['review']>

interface Card {
  callId?: unknown
  args?: unknown
  ahead?: unknown
  preview?: { hash: string }
}

export class Worker {
  readonly journal: Journal
  readonly #url: string
  readonly #random: Random
  readonly #cookie = randomBytes(32).toString('base64url')
  readonly #name: string
  #client: Client | undefined
  #count = 0
  /** By call. */
  readonly #args = new Map<string, unknown>()

  constructor(url: string, name: string, random: Random) {
    this.#url = url
    this.#name = name
    this.#random = random
    this.journal = {
      sessionId: `chaos-${name}`,
      accepted: [],
      decided: new Map(),
      rewound: [],
      branches: [],
      tried: [],
      uploaded: [],
      kept: 0,
      reviewed: 0,
      undone: 0,
      reloads: 0
    }
  }

  async work(signal: AbortSignal): Promise<void> {
    this.#connect()
    while (!signal.aborted) {
      await this.#act().catch(() => {})
      await delay(this.#random.between(20, 400), undefined, { signal }).catch(() => {})
    }
  }

  /** Call this when everything is up again. Answers what is open and checks that the session works. Resolves to the effects found in it. */
  async finish(): Promise<string[]> {
    const until = Date.now() + FINAL_MS
    for (let last = 'nothing was tried'; Date.now() < until; await delay(200)) {
      try {
        this.#reload()
        const { transcript } = await this.#snapshot()
        if (transcript.turnId !== null) await this.#client?.wait('turn:end', undefined, { ms: TURN_MS })
        // The last look must show the workspace. While a review waits, this is refused, and the next round tries again.
        const { ok } = await this.#ask('mode:select', { mode: 'ask' })
        if (!ok) throw new Error('A review still waits.')
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
    if (dice < 0.22) return void (await this.#ask('mode:select', { mode: this.#random.pick(APPROVAL_MODES) }))
    if (dice < 0.27) return this.#undo()
    if (dice < 0.29) return this.#branch()
    const commands = Array.from({ length: dice < 0.45 ? 2 : 1 }, () => {
      const marker = this.#marker(this.#random.chance(0.8) ? 'yes' : 'no')
      const pause = this.#random.chance(0.3) ? 'sleep 0.3; ' : ''
      return `run ${pause}${leave(marker)}`
    })
    const from = this.#client?.seen.length ?? 0
    if (await this.#send(commands.join('\n'))) {
      // It may come while a card or a review waits, and changes the workspace under the fork.
      if (this.#random.chance(0.5)) await this.#upload()
      await this.#client?.wait('turn:end', undefined, { from, ms: TURN_MS })
    }
  }

  /** Takes back a message, with another one in its place or without. Only the conversation goes back: what ran has happened. */
  async #rewind(): Promise<void> {
    const seqs = this.#client?.all('user:message').map(({ seq }) => Number(seq)) ?? []
    if (seqs.length === 0) return
    const from = this.#random.pick(seqs.slice(-4))
    const text = this.#random.chance(0.5) ? `run ${leave(this.#marker('yes'))}` : undefined
    const id = randomBytes(8).toString('hex')
    const { ok } = await this.#ask('history:rewind', { from, ...(text !== undefined && { message: { text, id } }) })
    if (ok) this.journal.rewound.push(from)
    if (ok && text !== undefined) this.journal.accepted.push(text)
    if (ok && text === undefined && this.#random.chance(0.3)) await this.#restore()
  }

  async #restore(): Promise<void> {
    const of = this.#client?.all('history:rewound').at(-1)?.seq
    if (of !== undefined) await this.#ask('history:restore', { of: Number(of) })
  }

  /** Undoes the changes of one of the last calls. It is refused if they are undone already. */
  async #undo(): Promise<void> {
    const made = this.#client?.all('tool:result').flatMap(({ changes, isForked }) => {
      const { changeId } = (changes ?? {}) as { changeId?: string }
      return changeId === undefined || isForked ? [] : [changeId]
    })
    if (!made?.length) return
    const changeId = this.#random.pick(made.slice(-4))
    const plan = await this.#http(`changes/${encodeURIComponent(changeId)}/revert?scope=one`)
    if (!plan.ok) return
    const { hash } = (await plan.json()) as RevertPlanReply
    const { ok } = await this.#ask('files:revert', { changeId, scope: 'one', hash })
    if (ok) this.journal.undone += 1
  }

  async #upload(): Promise<void> {
    const marker = this.#marker('yes')
    this.journal.tried.push(marker)
    const path = encodeURIComponent(`${FOLDER}/${marker}`)
    const { status } = await this.#http(`file?path=${path}`, { method: 'PUT', body: `${marker}\n` })
    if (status === 204) this.journal.uploaded.push(marker)
  }

  async #branch(): Promise<void> {
    const seqs = this.#client?.all('user:message').map(({ seq }) => Number(seq)) ?? []
    if (seqs.length === 0) return
    const body = JSON.stringify({ before: this.#random.pick(seqs), files: this.#random.pick(['now', 'then']) })
    const reply = await this.#http('branch', { method: 'POST', body })
    if (reply.status === 201) this.journal.branches.push(((await reply.json()) as { sessionId: string }).sessionId)
  }

  #http(path: string, init: RequestInit = {}): Promise<Response> {
    const { headers } = browserOf(this.#cookie, this.#url)
    const signal = AbortSignal.timeout(ACK_MS)
    const url = `${this.#url}/api/sessions/${this.journal.sessionId}/${path}`
    return fetch(url, { ...init, signal, headers: { ...headers, 'content-type': 'application/json' } })
  }

  async #effects(marker: string): Promise<string[]> {
    const client = this.#client
    const from = client?.seen.length ?? 0
    if (!client || !(await this.#send(`run ${leave(marker)}; cat ${FOLDER}/*`))) throw new Error('not accepted')
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
    const answer = (card: Card) => void this.#decide(client, card).catch(() => {})
    const review = (opened: Review) => void this.#review(client, opened).catch(() => {})
    client.socket.on('tool:approval_required', (card: Card) => {
      this.#args.set(String(card.callId), card.args)
      // A call that runs in a fork is decided when that is over.
      if (card.ahead !== 'preview') answer(card)
    })
    client.socket.on('tool:previewed', ({ callId, hash }: { callId: string; hash: string }) => {
      answer({ callId, args: this.#args.get(callId), preview: { hash } })
    })
    client.socket.on('tool:preview_refused', ({ callId }: Card) => {
      answer({ callId, args: this.#args.get(String(callId)) })
    })
    client.socket.on('review:opened', review)
    client.socket.on('session:snapshot', ({ pendingApprovals, transcript }: Snapshot) => {
      // The card of a call that runs in a fork may have come while nobody was connected.
      for (const { callId, args } of Object.values(transcript.calls)) this.#args.set(callId, args)
      for (const card of pendingApprovals) answer(card)
      if (transcript.review) review(transcript.review)
    })
  }

  async #decide(client: Client, { callId, args, preview }: Card): Promise<void> {
    if (typeof callId !== 'string' || args === undefined) return
    const approved = !/-no\b/.test(JSON.stringify(args))
    const decision = { callId, approved, ...(preview && { hash: preview.hash }) }
    const { ok } = await client.socket.timeout(ACK_MS).emitWithAck('tool:approval', decision)
    if (ok) this.journal.decided.set(callId, approved)
    if (ok && approved && preview) this.journal.kept += 1
  }

  async #review(client: Client, { reviewId, changes }: Review): Promise<void> {
    const accepted = changes.files.map(({ path }) => path).filter((path) => path.endsWith('-yes'))
    const decision = { reviewId, hash: changes.hash, accept: accepted.length > 0 ? accepted : 'none' }
    const { ok } = await client.socket.timeout(ACK_MS).emitWithAck('review:decide', decision)
    if (ok) this.journal.reviewed += 1
  }

  async #snapshot(): Promise<Snapshot> {
    if (!this.#client) throw new Error('not connected')
    return this.#client.snapshot()
  }
}
