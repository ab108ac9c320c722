import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { temporaryFolder } from '../../../../tests/support/temporary-folder.ts'
import { openAuditLog } from '../../../app/app-audit.ts'
import { createGatewayApp } from '../../../app/app-gateway.ts'
import { chatServers, hasMembers, openSenderCheck, serverDirectory } from '../../../app/app-servers.ts'
import { sharedParts } from '../../../app/shared-parts.ts'
import type { ImportPlace } from '../../../catalog/import/client-files.ts'
import { fakeEventLog } from '../../../code/fake-event-log.ts'
import { loadSettings } from '../../../config/load-settings.ts'
import { AppError } from '../../../lib/errors.ts'
import { silentLogger } from '../../../lib/logger.ts'
import { AdminAccess } from '../../../sessions/access/admin-access.ts'
import { InstanceAccess } from '../../../sessions/access/instance-access.ts'
import { fakeKeyValueStore } from '../../../storage/fake-key-value-store.ts'
import { createHttpServer } from '../../create-http-server.ts'
import { Readiness } from '../../readiness.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const enter = async () => ({ cookie: 'owner', isKnown: false })

const fakeCore = () => ({ store: { keyValues: fakeKeyValueStore(), events: fakeEventLog() } })
const noEntries = async () => ({ entries: [], next: null })

/** The routes over a real registry, with real children, and nothing else behind them. */
export async function openServerRoutes(
  mcpServers?: Record<string, unknown>,
  credentials = '',
  tokens: { AUTH_TOKEN?: string; ADMIN_TOKEN?: string } = {},
  importPlace?: ImportPlace
) {
  const dir = temporaryFolder()
  const file = join(dir, 'mcp.json')
  const secretsFile = join(dir, 'credentials')
  writeFileSync(secretsFile, credentials, { mode: 0o600 })
  if (mcpServers) writeFileSync(file, JSON.stringify({ mcpServers, other: 'kept' }))
  const settings = loadSettings({ env: { MCP_CONFIG: file, DATA_DIR: dir, CREDENTIALS_FILE: secretsFile, ...tokens } })
  const shared = sharedParts(fakeCore(), openAuditLog(settings))
  const { keyValues, guard } = shared
  const environment = { PATH: process.env.PATH, ...tokens }
  const hidesReasons = hasMembers(settings)
  const options = { environment, optionalRegistry: true, shared, hidesReasons }
  const gateway = await createGatewayApp(settings, silentLogger, options)
  const chat = chatServers(gateway, silentLogger)
  const unused = () => Promise.reject(new AppError('internal', 'internal', 'not in this test'))
  const entrance = {
    instance: new InstanceAccess(settings.AUTH_TOKEN, silentLogger),
    admin: new AdminAccess(settings, silentLogger),
    addressOf: () => 'here'
  }
  const http = await createHttpServer({
    readiness: new Readiness({}, silentLogger),
    models: { catalog: unused },
    providers: { list: unused, set: unused, remove: unused },
    sessions: {
      ...{ open: unused, check: unused, checkDeleted: unused, list: unused, ids: unused },
      ...{ summary: unused, change: unused, hide: unused, restore: unused, destroy: unused }
    },
    files: { list: unused, read: unused, write: unused, archive: unused, change: unused, replace: unused },
    history: { versions: unused, changes: unused, revertPlan: unused, content: unused },
    attachments: { add: unused, read: unused, removeUnsent: unused },
    ...{ inbox: { open: unused, answer: unused }, runs: { list: unused, cancel: unused } },
    instructions: { of: unused, change: unused },
    maxUploadBytes: 1,
    maxHistoryTokens: 100_000,
    ...{ search: { find: unused }, importConversation: unused, branchSession: unused },
    transcript: unused,
    ...entrance,
    senders: openSenderCheck(gateway, entrance),
    requestsPerMinute: 600,
    owners: { ownerOf: async () => undefined, enter, isKnown: async () => true },
    metrics: async () => '',
    servers: serverDirectory(gateway, keyValues, chat.policy, guard, importPlace),
    ownerOf: () => 'local',
    audit: { read: noEntries, about: unused, ownerOf: () => 'local', problem: undefined },
    mcp: unused,
    webRoot: temporaryFolder(),
    logger: silentLogger
  })
  const url = await http.listen({ port: 0, host: '127.0.0.1' })
  closers.push(
    () => rmSync(dir, { recursive: true, force: true }),
    () => shared.auditLog.audit.close(),
    () => gateway.stop(),
    () => http.close()
  )
  const ask = async <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const init = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await fetch(`${url}/api/servers${path}`, { method, ...init, headers: { ...type, ...headers } })
    const text = await answer.text()
    return { status: answer.status, text, json: (text === '' ? null : JSON.parse(text)) as T }
  }
  const saved = () => JSON.parse(readFileSync(file, 'utf8'))
  return { url, ask, file, secretsFile, chat, gateway, keyValues, saved, raw: http.raw }
}
