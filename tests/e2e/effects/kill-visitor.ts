/** A person at a server that is killed and started again: enters, looks, and waits. */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { RevertPlanReply } from '../../../contract/effects/effect-replies.ts'
import type { Snapshot } from '../../../contract/live.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import { openEngine } from '../../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../../server/config/load-settings.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import type { Client } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import type { Served } from '../../support/serve.ts'

/** Limits for a test that waits for a server and looks more often than a person may. */
export const OFTEN = { COMMANDS_PER_MINUTE: '10000', REQUESTS_PER_MINUTE: '100000' }

export interface Visitor {
  id: string
  token: string | undefined
  client: Client
}

export async function transcriptOf({ client }: Visitor): Promise<Transcript> {
  const from = client.seen.length
  await client.ask('session:snapshot')
  return ((await client.snapshot(from)) as Snapshot).transcript
}

export const get = (server: Served, path: string, { id, token }: Visitor) =>
  fetch(`${server.url}/api/sessions/${id}/${path}`, { headers: { 'x-session-token': String(token) } })

export const contentOf = async (server: Served, visitor: Visitor) => {
  const reply = await get(server, 'file?path=runs.txt', visitor)
  return reply.ok ? reply.text() : ''
}

export async function enter(server: Served, known?: Visitor): Promise<Visitor> {
  const id = known?.id ?? `kill-${randomUUID()}`
  const client = server.connect(id, { token: known?.token })
  const { token = known?.token } = await client.ready()
  await client.snapshot()
  return { id, token, client }
}

export async function planOf(server: Served, visitor: Visitor, changeId: string): Promise<RevertPlanReply> {
  const reply = await get(server, `changes/${encodeURIComponent(changeId)}/revert?scope=one`, visitor)
  return (await reply.json()) as RevertPlanReply
}

/** Nobody works on it any more: the turn is over, and no review opens or is applied. */
export async function quiet(visitor: Visitor): Promise<Transcript> {
  let last: Transcript | undefined
  await eventually('the session is quiet', async () => {
    last = await transcriptOf(visitor)
    return last.turnId === null && last.forkedTurn === null && last.unapplied === null
  })
  if (!last) throw new Error('There is no transcript.')
  return last
}

/** A server that stops removes its sandboxes, so nothing may be left of it or of the one that was killed. */
export async function expectNothingLeft({ deployment }: Served): Promise<void> {
  const engine = await openEngine(loadSettings({ env: {} }), silentLogger)
  try {
    await expect.poll(() => engine.list(deployment)).toEqual([])
  } finally {
    await engine.close()
  }
}
