import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../../tests/support/eventually.ts'
import { textOf } from '../../../../tests/support/text-of.ts'
import { child } from '../../../connections/connections.fixture.ts'
import { serveExposed } from '../expose.fixture.ts'

type Served = Awaited<ReturnType<typeof serveExposed>>
const opened: Served[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((served) => served.close()))
})

async function open(leftMs?: number) {
  const served = await serveExposed({ a: child('who') }, undefined, { ...(leftMs === undefined ? {} : { leftMs }) })
  opened.push(served)
  const connect = async (capabilities: ClientCapabilities) => {
    const client = new Client({ name: 'ann', version: '1' }, { capabilities })
    const transport = new StreamableHTTPClientTransport(served.url)
    await client.connect(transport)
    const pid = async () => JSON.parse(textOf(await client.callTool({ name: 'a__who', arguments: {} }))).pid as string
    return { client, transport, pid }
  }
  return { ...served, connect, pids: () => served.connections.childPids }
}
type Opened = Awaited<ReturnType<typeof open>>
const noneLeft = ({ pids }: Opened) => eventually('all processes to end', () => pids().length === 0)

describe('processes of exposed servers', { timeout: 60_000 }, () => {
  // Checked: if each of them has a lane of its own, there are 40 processes.
  it('are shared by clients that can be asked nothing, and end with the last of 40', async () => {
    const test = await open()
    const clients = await Promise.all(Array.from({ length: 40 }, () => test.connect({})))
    const found = new Set(await Promise.all(clients.map(({ pid }) => pid())))
    expect([found.size, test.pids().length]).toEqual([1, 1])
    for (const { transport } of clients) await transport.terminateSession()
    await noneLeft(test)
  })

  it('belong to one client if it can be asked, or wants log messages, and end with it', async () => {
    const test = await open()
    const [asked, other, logging] = [await test.connect({ roots: {} }), await test.connect({}), await test.connect({})]
    const pids = [await asked.pid(), await other.pid(), await logging.pid()]
    expect(new Set(pids).size).toBe(2)
    await logging.client.setLoggingLevel('info')
    expect(pids).not.toContain(await logging.pid())
    expect(test.pids()).toHaveLength(3)
    await asked.transport.terminateSession()
    await logging.transport.terminateSession()
    await eventually('two of them to end', () => test.pids().length === 1)
    await other.transport.terminateSession()
    await noneLeft(test)
  })

  // Checked: if only the end of a session counts, they stay until they have been idle for long.
  it.each([{}, { roots: {} }])(
    'end if a client leaves without a word, and start again if it returns (%j)',
    async (can) => {
      const test = await open(20)
      const { client, transport, pid } = await test.connect(can)
      const first = await pid()
      const { sessionId } = transport
      await client.close()
      await noneLeft(test)
      const again = new StreamableHTTPClientTransport(test.url, sessionId === undefined ? {} : { sessionId })
      await again.start()
      const answer = new Promise<Record<string, unknown>>((done) => {
        again.onmessage = (message) => 'result' in message && done(message.result)
      })
      const params = { name: 'a__who', arguments: {} }
      await again.send({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })
      expect(JSON.parse(textOf(await answer)).pid).not.toBe(first)
      await again.terminateSession()
      await noneLeft(test)
    }
  )
})
