/** The official client, able to do all that a server may ask of it, at either door of the pass-through mode. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { serveExposed } from '../../server/gateway/expose/expose.fixture.ts'
import { startGateway } from '../support/gateway-process.ts'

export type Door = 'stdio' | 'http'
export type Era = 'legacy' | 'auto'

export interface ExposedClient {
  client: Client
  /** The methods of the requests that it got. */
  asked: string[]
  /** Notifications that came by themselves. */
  heard: { method: string; params: Record<string, unknown> }[]
}

/** `name` is part of its answers, so that a test knows which client gave them. */
export function createClient(era: Era, name = 'someone', canAnswer = true): ExposedClient {
  const asked: string[] = []
  const heard: ExposedClient['heard'] = []
  const hear = (method: string) => () => void heard.push({ method, params: {} })
  const listChanged = { autoRefresh: false, debounceMs: 0 }
  const client = new Client(
    { name, version: '1' },
    {
      versionNegotiation: { mode: era },
      capabilities: canAnswer ? { elicitation: { form: {} }, sampling: {}, roots: { listChanged: true } } : {},
      listChanged: {
        tools: { ...listChanged, onChanged: hear('tools') },
        prompts: { ...listChanged, onChanged: hear('prompts') },
        resources: { ...listChanged, onChanged: hear('resources') }
      }
    }
  )
  if (canAnswer) {
    client.setRequestHandler('elicitation/create', ({ method, params }) => {
      asked.push(method)
      // The gateway's own question has choices; the first one is the plain yes.
      const choices = /"answer":\{.*?"enum":\["(.*?)"/.exec(JSON.stringify(params))
      if (choices) return { action: 'accept' as const, content: { answer: choices[1] ?? '' } }
      return { action: 'accept' as const, content: { name, username: name, email: `${name}@example.com` } }
    })
    client.setRequestHandler('sampling/createMessage', ({ method }) => {
      asked.push(method)
      return { role: 'assistant' as const, model: 'test', content: { type: 'text' as const, text: `said ${name}` } }
    })
    client.setRequestHandler('roots/list', ({ method }) => {
      asked.push(method)
      return { roots: [{ uri: `file:///home/${name}`, name }] }
    })
  }
  client.fallbackNotificationHandler = async ({ method, params = {} }) => void heard.push({ method, params })
  return { client, asked, heard }
}

export interface Opened extends ExposedClient {
  /** Another client of the same gateway; over HTTP only. */
  another(name: string): Promise<ExposedClient>
  close(): Promise<void>
}

export async function openExposed(
  door: Door,
  era: Era,
  servers: Record<string, unknown>,
  { only, canAnswer = true }: { only?: string; canAnswer?: boolean } = {}
): Promise<Opened> {
  const own = createClient(era, 'someone', canAnswer)
  if (door === 'stdio') {
    const gateway = await startGateway(servers, { args: ['--expose', only ?? 'all'], client: own.client })
    return {
      ...own,
      another: () => Promise.reject(new Error('There is one client on stdio.')),
      close: () => gateway.end()
    }
  }
  const served = await serveExposed(servers, only)
  const clients: Client[] = []
  const connect = async (one: ExposedClient) => {
    await one.client.connect(new StreamableHTTPClientTransport(served.url))
    clients.push(one.client)
    return one
  }
  await connect(own)
  return {
    ...own,
    another: (name) => connect(createClient(era, name)),
    async close() {
      await Promise.all(clients.map((client) => client.close()))
      await served.close()
    }
  }
}
