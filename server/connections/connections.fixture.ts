import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import type { Caller } from '../calls/caller.ts'
import { openCredentials } from '../catalog/credentials.ts'
import { readRegistry } from '../catalog/registry.ts'
import { StoredTools } from '../catalog/stored-tools.ts'
import { silentLogger } from '../lib/logger.ts'
import { fakeRouter } from '../routing/fake-router.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { ToolIndex } from '../tools/tool-index.ts'
import { Connections } from './connections.ts'
import type { CallInput } from './wire/call-input.ts'

const children = resolve(import.meta.dirname, '../../tests/fixtures/children')
const packages = resolve(import.meta.dirname, '../../node_modules/@modelcontextprotocol')

export const LOCAL: Caller = { owner: 'local', door: 'stdio' }

/** An entry that runs a fixture. */
export function child(name: string, args: string[] = [], more: Record<string, unknown> = {}): Record<string, unknown> {
  return { command: process.execPath, args: [join(children, `${name}.ts`), ...args], ...more }
}

/** An entry that runs a real server. */
export function real(name: 'server-everything' | 'server-memory'): Record<string, unknown> {
  return { command: process.execPath, args: [join(packages, name, 'dist/index.js')] }
}

export async function openTestConnections(
  mcpServers: Record<string, unknown>,
  options: { keyValues?: KeyValueStore; credentials?: string } = {}
) {
  const dir = temporaryFolder()
  const registry = readRegistry(JSON.stringify({ mcpServers }), 'mcp.json')
  const keyValues = options.keyValues ?? fakeKeyValueStore()
  const router = fakeRouter()
  const index = new ToolIndex({ stored: new StoredTools(keyValues), router, logger: silentLogger })
  await index.load(registry)
  const connections = new Connections({
    index,
    credentials: openCredentials({
      file: options.credentials,
      environment: { PATH: process.env.PATH, FROM_OUTSIDE: 'outside-value' },
      ours: []
    }),
    environment: { PATH: process.env.PATH, HOME: dir, GATEWAY_ONLY: 'gateway-secret' },
    logDir: join(dir, 'logs'),
    openContainers: () => Promise.reject(new Error('no container in these tests')),
    version: '0',
    logger: silentLogger
  })
  const signal = new AbortController().signal
  return {
    connections,
    index,
    router,
    keyValues,
    dir,
    log: (server: string) => readFileSync(join(dir, 'logs', `${server}.log`), 'utf8'),
    call(server: string, tool: string, args: Record<string, unknown> = {}, more: Partial<CallInput> = {}) {
      return connections.call(server, { caller: LOCAL, tool, args, mustNotRepeat: false, signal, ...more })
    },
    close: () => connections.close()
  }
}

export type TestConnections = Awaited<ReturnType<typeof openTestConnections>>

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
