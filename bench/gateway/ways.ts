/** The ways to call the same `echo` tool of server-everything: directly, through a relay that only copies bytes, through the gateway. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'

/** A way to call `echo`, and the process in between. */
export interface Way {
  echo(message: string): Promise<unknown>
  pid: number
  close(): Promise<unknown>
}

export type Era = 'legacy' | 'auto'

export const GATEWAY = join(packageRoot(), 'bin/mcp-orchestrator')
export const EVERYTHING = [
  process.execPath,
  join(packageRoot(), 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
] as const
const RELAY = join(import.meta.dirname, 'stdio-relay.ts')
const MESSAGE_WRONG = 'An answer was not its own.'

export interface Folder {
  dir: string
  config: string
  remove(): void
}

/** Creates a registry with these servers in a new folder. */
export function registryFolder(mcpServers: Record<string, { command: string; args: string[] }>): Folder {
  const dir = temporaryFolder()
  const config = join(dir, 'mcp.json')
  writeFileSync(config, JSON.stringify({ mcpServers }))
  return { dir, config, remove: () => rmSync(dir, { recursive: true, force: true }) }
}

export const everythingEntry = { command: EVERYTHING[0], args: [EVERYTHING[1]] }

export async function connectStdio(
  command: string,
  args: string[],
  env: Record<string, string> = {},
  era: Era = 'legacy',
  cwd?: string
) {
  const { PATH = '', HOME = '' } = process.env
  const transport = new StdioClientTransport({
    command,
    args,
    env: { PATH, HOME, ...env },
    stderr: 'ignore',
    ...(cwd && { cwd })
  })
  const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: era } })
  await client.connect(transport)
  return { client, pid: transport.pid ?? 0 }
}

export function startGateway({ dir, config }: Folder, era: Era = 'legacy', more: string[] = []) {
  return connectStdio(GATEWAY, ['gateway', '--config', config, ...more], { DATA_DIR: join(dir, 'data') }, era)
}

export async function stdioWays(folder: Folder): Promise<Record<string, Way>> {
  const direct = await connectStdio(EVERYTHING[0], [EVERYTHING[1]])
  const relay = await connectStdio(process.execPath, [RELAY, ...EVERYTHING])
  return {
    direct: plain(direct),
    relay: plain(relay),
    gateway: executed(await startGateway(folder)),
    gatewayModern: executed(await startGateway(folder, 'auto')),
    exposed: plain(await startGateway(folder, 'legacy', ['--expose', 'everything']))
  }
}

export interface HttpEnds {
  gateway: { url: string; pid: number }
  /** The same with GATEWAY_EXPOSE. */
  exposed: { url: string; pid: number }
  child: { url: string; pid: number }
}

/** `direct` is the child over its own HTTP, `directStdio` the child over stdio, as the gateway runs it. */
export async function httpWays({ gateway, exposed, child }: HttpEnds): Promise<Record<string, Way>> {
  return {
    direct: plain(await connectHttp(child.url, child.pid)),
    directStdio: plain(await connectStdio(EVERYTHING[0], [EVERYTHING[1]])),
    relay: await throughRelay('http-relay.ts', [child.url]),
    relayToStdio: await throughRelay('http-to-stdio-relay.ts', [...EVERYTHING]),
    gateway: executed(await connectHttp(gateway.url, gateway.pid)),
    gatewayModern: executed(await connectHttp(gateway.url, gateway.pid, 'auto')),
    exposed: plain(await connectHttp(exposed.url, exposed.pid))
  }
}

async function throughRelay(file: string, args: string[]): Promise<Way> {
  const relay = await startHttpRelay(file, args)
  const through = plain(await connectHttp(relay.url, relay.pid))
  return {
    ...through,
    close: async () => {
      await through.close()
      relay.stop()
    }
  }
}

async function connectHttp(url: string, pid: number, era: Era = 'legacy') {
  const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: era } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return { client, pid }
}

async function startHttpRelay(file: string, args: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const [port] = await once(child.stdout, 'data')
  return { url: `http://127.0.0.1:${String(port).trim()}/mcp`, pid: child.pid ?? 0, stop: () => child.kill() }
}

function plain({ client, pid }: { client: Client; pid: number }): Way {
  return way(client, pid, (message) => client.callTool({ name: 'echo', arguments: { message } }))
}

function executed({ client, pid }: { client: Client; pid: number }): Way {
  return way(client, pid, (message) =>
    client.callTool({ name: 'execute', arguments: { server: 'everything', tool: 'echo', params: { message } } })
  )
}

function way(client: Client, pid: number, call: (message: string) => ReturnType<Client['callTool']>): Way {
  return {
    pid,
    close: () => client.close(),
    async echo(message) {
      const { content } = await call(message)
      const [part] = content
      if (part?.type !== 'text' || part.text !== `Echo: ${message}`) throw new Error(MESSAGE_WRONG)
    }
  }
}

/** CPU time of a process so far, over all its threads. */
export function cpuMs(pid: number): number {
  const tasks = `/proc/${pid}/task`
  const ns = readdirSync(tasks).map((task) => Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]))
  return ns.reduce((sum, each) => sum + each, 0) / 1e6
}
