/** Runs the gateway as a client would, and talks to it with the official client. */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  Client,
  type ClientCapabilities,
  type JSONRPCMessage,
  ReadBuffer,
  serializeMessage,
  type Transport
} from '@modelcontextprotocol/client'
import { productArgs, productEnv } from './product.ts'
import { temporaryFolder } from './temporary-folder.ts'

export interface GatewayProcess {
  process: ChildProcessWithoutNullStreams
  client: Client
  dir: string
  config: string
  stderr(): string
  /** Lines on stdout that were no messages. */
  noise: string[]
  exited: Promise<number | null>
  call(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>>
  end(): Promise<void>
}

export interface GatewayProcessOptions {
  era?: 'legacy' | 'auto'
  env?: Record<string, string>
  args?: string[]
  /** A command that starts the gateway in its turn. */
  under?: string[]
  /** The requests that the client supports, and its handlers for them. */
  capabilities?: ClientCapabilities
  onClient?: (client: Client) => void
  /** Used in place of a client that is created here. */
  client?: Client
}

type Servers = Record<string, unknown>

export async function startGateway(
  servers: Servers | ((at: { dir: string }) => Servers),
  {
    era = 'legacy',
    env = {},
    args = [],
    under = [],
    capabilities = {},
    onClient,
    client: given
  }: GatewayProcessOptions = {}
): Promise<GatewayProcess> {
  const dir = temporaryFolder()
  const config = join(dir, 'mcp.json')
  const mcpServers = typeof servers === 'function' ? servers({ dir }) : servers
  writeFileSync(config, JSON.stringify({ mcpServers }, null, 2))
  const words = ['gateway', '--config', config, ...args]
  const process = spawnGateway(words, { DATA_DIR: join(dir, 'data'), ...env }, under)
  const noise: string[] = []
  let stderr = ''
  process.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const exited = new Promise<number | null>((done) => process.once('exit', (code) => done(code)))
  const made = () => new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era }, capabilities })
  const client = given ?? made()
  onClient?.(client)
  await client.connect(new PipeTransport(process, noise))
  return {
    process,
    client,
    dir,
    config,
    noise,
    exited,
    stderr: () => stderr,
    call: async (name, args) => ({ ...(await client.callTool({ name, arguments: args })) }),
    async end() {
      process.stdin.end()
      await exited
      rmSync(dir, { recursive: true, force: true })
    }
  }
}

export function spawnGateway(
  args: string[],
  env: Record<string, string>,
  under: string[] = []
): ChildProcessWithoutNullStreams {
  const { PATH = '', HOME = '', TMPDIR = tmpdir() } = process.env
  const [command = '', ...words] = [...under, process.execPath, ...productArgs('gateway'), ...args]
  return spawn(command, words, { env: { PATH, HOME, TMPDIR, ...productEnv(), ...env } })
}

/** The SDK's own stdio transport ends its child in its own way; these tests want to do that themselves. */
class PipeTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly stderr = null
  readonly pid: number
  readonly #process: ChildProcessWithoutNullStreams
  readonly #noise: string[]
  #delivered: Promise<void> = Promise.resolve()

  constructor(process: ChildProcessWithoutNullStreams, noise: string[]) {
    this.#process = process
    this.#noise = noise
    this.pid = process.pid ?? 0
  }

  async start(): Promise<void> {
    const buffer = new ReadBuffer()
    this.#process.stdin.on('error', () => {})
    this.#process.once('exit', () => this.onclose?.())
    this.#process.stdout.on('data', (chunk: Buffer) => {
      buffer.append(chunk)
      this.#delivered = this.#delivered.then(() => this.#deliver(buffer))
    })
  }

  /** One by one: the SDK handles a notification in a microtask, and an answer right behind it would overtake it. */
  async #deliver(buffer: ReadBuffer): Promise<void> {
    for (;;) {
      try {
        const message = buffer.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.#noise.push(String(error))
      }
      await new Promise((next) => setImmediate(next))
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#process.stdin.write(serializeMessage(message))
  }

  async close(): Promise<void> {
    this.#process.stdin.end()
    this.onclose?.()
  }
}

/**
 * The ids of processes with this word in their command line. Leaves out the gateway, which knows the word from a file, and the shells
 * that start a child in its namespaces, because they end together with the child.
 */
export function processesWith(word: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${name}/status`, 'utf8'))
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      const isShell = /^mcp-orchestrator-(child|init)$/.test(words[3] ?? '')
      return !isZombie && !isShell && words.join(' ').includes(word) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}
