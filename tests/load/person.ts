/** One of many people at work: starts a turn with a tool call every few seconds, and approves each card at once. */

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../support/client.ts'
import { textOf } from '../support/text-of.ts'

export interface Timing {
  /** When it began, ms since the start of the load. */
  at: number
  /** From the approval to the result. */
  callMs: number
  /** From the message to the end of the turn. */
  turnMs: number
}

export interface Work {
  connect: (sessionId: string) => Client
  signal: AbortSignal
  began: number
  /** Between two turns, on average. */
  pauseMs: number
  onTurn: (timing: Timing) => void
  onError: (sentence: string) => void
}

const LIMIT_MS = 60_000

export async function workAsOne(work: Work): Promise<void> {
  const { signal, pauseMs } = work
  const sessionId = `load-${randomUUID()}`
  const client = work.connect(sessionId)
  await client.snapshot()
  // Not all at once.
  await pause(Math.random() * pauseMs, signal)
  for (let turn = 1; !signal.aborted; turn++) {
    try {
      work.onTurn(await oneTurn(client, `${sessionId}-${turn}`, work.began))
    } catch (error) {
      work.onError(`${sessionId}: ${error instanceof Error ? error.message.slice(0, 500) : error}`)
    }
    await pause(pauseMs * (0.5 + Math.random()), signal)
  }
  client.close()
}

async function oneTurn(client: Client, mark: string, began: number): Promise<Timing> {
  const from = client.seen.length
  const start = performance.now()
  const sent = await client.ask('message', `run echo ${mark} | tee -a log.txt`)
  if (!sent.ok) throw new Error(`not accepted: ${sent.error.message}`)
  const card = await client.wait('tool:approval_required', undefined, { from, ms: LIMIT_MS })
  const approved = performance.now()
  const decided = await client.ask('tool:approval', { callId: card.callId, approved: true })
  if (!decided.ok) throw new Error(`not approved: ${decided.error.message}`)
  const result = await client.wait('tool:result', undefined, { from, ms: LIMIT_MS })
  const callMs = performance.now() - approved
  if (!textOf(result).includes(mark)) throw new Error(`another answer: ${textOf(result).slice(0, 200)}`)
  await client.wait('turn:end', undefined, { from, ms: LIMIT_MS })
  // Events that were read are no longer needed; keeping them would leak memory in this process.
  client.seen.length = 0
  return { at: start - began, callMs, turnMs: performance.now() - start }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}
