import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { PATIENCE_MS } from '../../tests/support/patience-ms.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import type { Caller } from '../calls/caller.ts'
import { openCredentials } from '../catalog/credentials.ts'
import { readRegistry } from '../catalog/registry.ts'
import { StoredTools } from '../catalog/stored-tools.ts'
import { silentLogger } from '../lib/logger.ts'
import type { Router } from '../routing/port.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'
import { ToolIndex } from '../tools/tool-index.ts'
import { Connections } from './connections.ts'
import type { CallInput } from './live-server.ts'

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

export function memoryKeyValues(): KeyValueStore {
  const spaces = new Map<string, Map<string, Json>>()
  const space = (name: string) => {
    const found = spaces.get(name) ?? new Map<string, Json>()
    spaces.set(name, found)
    return found
  }
  return {
    get: async (name, key) => space(name).get(key) ?? null,
    add: async (name, key, value) => !space(name).has(key) && Boolean(space(name).set(key, value)),
    set: async (name, key, value) => void space(name).set(key, structuredClone(value)),
    remove: async (name, key) => void space(name).delete(key),
    list: async (name) => [...space(name)].map(([key, value]) => ({ key, value }))
  }
}

/** Finds tools by their exact names only. */
export function plainRouter(): Router {
  const servers = new Map<string, { server: string; name: string; description: string }[]>()
  return {
    setServer: (server, tools) => void servers.set(server, tools),
    removeServer: (server) => void servers.delete(server),
    find(request, { limit = 5, server } = {}) {
      const all = [...servers].filter(([name]) => server === undefined || name === server).flatMap(([, tools]) => tools)
      const words = request.toLowerCase().split(/\W+/)
      const found = all.filter(({ name }) => name.split(/\W|_/).some((part) => words.includes(part)))
      const matches = found.map(({ server: of, name, description }) => ({
        server: of,
        tool: name,
        confidence: 1 / found.length,
        description
      }))
      return { matches: matches.slice(0, limit), abstained: found.length !== 1 }
    },
    learn: () => {},
    usage: () => [],
    forgetUsage: () => {}
  }
}

export async function openTestConnections(
  mcpServers: Record<string, unknown>,
  options: { keyValues?: KeyValueStore; credentials?: string } = {}
) {
  const dir = temporaryFolder()
  const registry = readRegistry(JSON.stringify({ mcpServers }), 'mcp.json')
  const keyValues = options.keyValues ?? memoryKeyValues()
  const router = plainRouter()
  const index = new ToolIndex({ stored: new StoredTools(keyValues), router, logger: silentLogger })
  await index.load(registry)
  const connections = new Connections({
    index,
    credentials: openCredentials({
      file: options.credentials,
      environment: { PATH: process.env.PATH, FROM_OUTSIDE: 'outside-value' }
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
    async close() {
      await connections.close()
      rmSync(dir, { recursive: true, force: true })
    }
  }
}

export type TestConnections = Awaited<ReturnType<typeof openTestConnections>>

export function textOf(result: Record<string, unknown>): string {
  const [part] = Array.isArray(result.content) ? result.content : []
  return String(part?.text)
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

export async function until(what: string, holds: () => boolean, ms = PATIENCE_MS): Promise<void> {
  const end = Date.now() + ms
  while (!holds()) {
    if (Date.now() > end) throw new Error(`Waited ${ms} ms for ${what}.`)
    await new Promise((done) => setTimeout(done, 20))
  }
}
