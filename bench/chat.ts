/** Measures the chat from the user's side: a whole server, a real socket, and a scripted vendor or the demo model. */

import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../server/lib/files/package-root.ts'
import { startAnthropicServer } from '../tests/fixtures/model-servers/anthropic-server.ts'
import { TEST_KEY } from '../tests/fixtures/model-servers/wires.ts'
import type { Client } from '../tests/support/client.ts'
import { type Served, serve, stopServers } from '../tests/support/serve.ts'
import { textOf } from '../tests/support/text-of.ts'
import { heapPerIdleSession } from './idle-sessions.ts'
import { NO_LIMITS } from './no-limits.ts'
import { round, step, summary, timed } from './statistics.ts'

/** A session accepts 30 messages per minute. */
const TURNS_PER_SESSION = 20
const SESSIONS = 50

export async function chatFigures(): Promise<object> {
  const bundle = existsSync(join(packageRoot(), 'dist', 'main.mjs'))
  try {
    return {
      server: bundle ? 'bundle' : 'source',
      firstTokenToDeltaMs: await step('chat: first token to delta', () => firstTokenToDelta(bundle)),
      approvalToCommandStartMs: await step('chat: approval to command', () => approvalToStart(bundle)),
      demoTurnsPerSecondAt50Sessions: await step('chat: turns per second', () => turnsPerSecond(bundle)),
      heapPerIdleSession: await step('chat: heap per idle session', heapPerIdleSession)
    }
  } finally {
    await stopServers()
  }
}

async function open(server: Served): Promise<Client> {
  const client = server.connect(`bench-${randomUUID()}`)
  await client.snapshot()
  return client
}

/** Time from the vendor writing its first token to the client receiving it. */
async function firstTokenToDelta(bundle: boolean): Promise<object> {
  let written = 0
  const vendor = await startAnthropicServer({
    models: [{ type: 'model', id: 'claude-bench', display_name: 'Claude', created_at: '2026-01-01' }],
    otherwise: () => {
      written = performance.now()
      return { text: ['One', ' two', ' three'] }
    }
  })
  const env = { LLM_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: vendor.url }
  const server = await serve({ ...NO_LIMITS, ...env }, { bundle })
  const times: number[] = []
  for (let session = 0; session < 16; session++) {
    const client = await open(server)
    for (let turn = 0; turn < TURNS_PER_SESSION; turn++) {
      const from = client.seen.length
      await client.ask('message', 'count')
      await client.wait('turn:end', undefined, { from })
      const delta = client.seen.slice(from).find(({ event }) => event === 'agent:delta')
      // The first session warms everything up.
      if (session > 0 && delta) times.push(delta.at - written)
    }
    client.close()
  }
  await Promise.all([server.stop(), vendor.close()])
  return summary(times)
}

/** The command prints its own start time; container and client share one clock. Includes starting the shell and `date`. */
async function approvalToStart(bundle: boolean): Promise<object> {
  const server = await serve(NO_LIMITS, { bundle })
  const times: number[] = []
  for (let session = 0; session < 3; session++) {
    const client = await open(server)
    for (let turn = 0; turn < TURNS_PER_SESSION; turn++) {
      const [card] = await client.cards('run date +%s%N')
      const from = client.seen.length
      const asked = performance.timeOrigin + performance.now()
      await client.ask('tool:approval', { callId: card?.callId, approved: true })
      await client.wait('turn:end', undefined, { from })
      const nanoseconds = /\d{19}/.exec(textOf(client.all('tool:result').at(-1)))?.[0]
      if (turn > 0) times.push(Number(nanoseconds) / 1e6 - asked)
    }
  }
  await server.stop()
  return summary(times)
}

async function turnsPerSecond(bundle: boolean): Promise<number> {
  const server = await serve(NO_LIMITS, { bundle })
  const clients = await Promise.all(Array.from({ length: SESSIONS }, () => open(server)))
  const talk = async (client: Client, turns: number) => {
    for (let turn = 0; turn < turns; turn++) await client.turn('hello')
  }
  await Promise.all(clients.map((client) => talk(client, 2)))
  const ms = await timed(() => Promise.all(clients.map((client) => talk(client, TURNS_PER_SESSION))))
  await server.stop()
  return round((SESSIONS * TURNS_PER_SESSION) / (ms / 1000))
}
