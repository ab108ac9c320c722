import { Client } from '@modelcontextprotocol/client'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { frame, line, openTransport, STDOUT, type WireRequest } from './docker-frame.fixture.ts'
import { workspaceConnection } from './workspace-connection.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'setTimeout', 'clearInterval', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A server that runs, if the engine is asked, and answers all but what `holds` names; that is in `held`. */
async function open(holds: (method: string) => boolean) {
  const { transport, theirs, requests } = await openTransport({ start: false })
  const held: WireRequest[] = []
  const answer = ({ id, method }: WireRequest) => {
    const initialized = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
    const result = method === 'initialize' ? initialized : { content: [] }
    theirs.write(frame(STDOUT, line({ jsonrpc: '2.0', id, result })))
  }
  const serve = async () => {
    for (;;) {
      const request = await requests()
      if (holds(request.method)) held.push(request)
      else if (request.id !== undefined) answer(request)
    }
  }
  void serve().catch(() => {})
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  return { connection: workspaceConnection('id', client, transport, async () => true), held, answer }
}

// Checked: if only the engine is asked, this call and all later ones wait for their full deadline.
it('is lost when its server no longer answers, even if it runs', async () => {
  let isStopped = false
  const { connection } = await open((method) => isStopped || method === 'tools/call')
  const call = connection.callTool('execute_command', {}, { timeoutMs: 600_000 })
  const lost = expect(call).rejects.toMatchObject({ code: 'connection_lost', details: { sent: true } })
  await vi.advanceTimersByTimeAsync(120_000)
  expect(connection.isOpen).toBe(true)
  isStopped = true
  await vi.advanceTimersByTimeAsync(40_000)
  expect(connection.isOpen).toBe(false)
  await lost
})

it('is not lost by a silence that begins when the answer is there: it may have been paused', async () => {
  const { connection, held, answer } = await open((method) => method !== 'initialize')
  const call = connection.callTool('execute_command', {}, { timeoutMs: 600_000 })
  await vi.advanceTimersByTimeAsync(3000)
  expect(held.map(({ method }) => method)).toContain('ping')
  for (const request of held) if (request.method === 'tools/call') answer(request)
  expect(await call).toEqual({ content: [] })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(connection.isOpen).toBe(true)
  await Promise.all([connection.close(), vi.advanceTimersByTimeAsync(1000)])
})
