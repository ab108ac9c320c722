/** The HTTP face: REST, static files, health. It parses requests, calls down and translates errors. It has no state. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify'
import type { ModelsReply } from '../../contract/rest.ts'
import type { Transcript } from '../../contract/transcript.ts'
import { AppError, type ErrorKind, errorCode, isAppError, messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Refusal, ReportRefusal } from '../lib/refusals.ts'
import { type WireError, wireError } from '../lib/web/wire-error.ts'
import type { ModelCatalog, Models } from '../models/port.ts'
import type { PersonInstructions } from '../sessions/access/person-instructions.ts'
import type { SenderCheck } from '../sessions/access/sender-check.ts'
import type { BranchSession } from '../sessions/directory/branch-session.ts'
import type { ImportConversation } from '../sessions/directory/import-conversation.ts'
import type { SessionSearch } from '../sessions/directory/session-search.ts'
import type { ServerDirectory } from '../tools/server-directory.ts'
import { bodyLimits, refuseDeep } from './body-room.ts'
import { type Drain, registerDrain } from './drain.ts'
import { registerHealth } from './health.ts'
import { registerPage } from './page-files.ts'
import type { Readiness } from './readiness.ts'
import { refuseServers } from './refuse-servers.ts'
import { type Inbox, registerApprovalRoutes } from './routes/approval-routes.ts'
import { type ConversationFiles, registerAttachmentRoutes } from './routes/attachment-routes.ts'
import { type AuditReader, registerAuditRoutes } from './routes/audit-routes.ts'
import { registerBranch } from './routes/branch-route.ts'
import { type ChangeHistory, registerChangeRoutes } from './routes/change-routes.ts'
import { registerExport } from './routes/export-route.ts'
import { type FileTransfer, registerFileRoutes } from './routes/file-routes.ts'
import { registerInstructions } from './routes/instructions-route.ts'
import { registerLogin } from './routes/login-route.ts'
import { registerOwner } from './routes/owner-route.ts'
import { type ProviderRoutesOptions, registerProviderRoutes } from './routes/provider-routes.ts'
import { type RunRoutesOptions, registerRunRoutes } from './routes/run-routes.ts'
import { registerSearch } from './routes/search-route.ts'
import { registerServerRoutes, type ServersAdminCheck } from './routes/servers/server-routes.ts'
import { registerSessionRoutes, type SessionDirectory } from './routes/session-routes.ts'
import { METRICS_PATH, registerSecurity, type SecurityOptions } from './security.ts'

export interface HttpServerOptions extends SecurityOptions, Pick<ProviderRoutesOptions, 'providers'>, RunRoutesOptions {
  readiness: Readiness
  models: Pick<Models, 'catalog'>
  maxHistoryTokens: number
  instructions: Pick<PersonInstructions, 'of' | 'change'>
  sessions: SessionDirectory
  attachments: ConversationFiles
  search: Pick<SessionSearch, 'find'>
  importConversation: ImportConversation
  branchSession: BranchSession
  files: FileTransfer
  history: ChangeHistory
  inbox: Inbox
  maxUploadBytes: number
  transcript: (sessionId: string) => Promise<Transcript>
  metrics: () => Promise<string>
  /** Called for every request that is answered with an error. */
  refused?: ReportRefusal
  servers: ServerDirectory
  admin: ServersAdminCheck
  /** Which local programs may send requests. */
  senders: Pick<SenderCheck, 'check'>
  audit: AuditReader
  /** The gateway's door; answers on the raw response. */
  mcp: (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void>
  /** The built page. */
  webRoot: string
  logger: Logger
}

export interface HttpServer {
  readonly raw: Server
  /** Resolves to the address that it listens on. */
  listen(at: { port: number; host: string }): Promise<string>
  readonly drain: Drain
  close(): Promise<void>
}

const MAX_MCP_BYTES = 16 * 1024 * 1024
/** Maximum time for receiving a whole request. Fastify has no default, so a slow client could hold a connection forever. */
const REQUEST_WITHIN_MS = 300_000

const STATUS: Record<ErrorKind, number> = {
  invalid: 400,
  'not-found': 404,
  conflict: 409,
  forbidden: 403,
  unavailable: 503,
  timeout: 504,
  cancelled: 499,
  internal: 500
}

/** Logs refusals, for operators who want to know why someone can't connect. */
const LOGGED = new Set([401, 403, 429, 503, 504])

const STATUS_OF_CODE: Record<string, number> = { unauthorized: 401, too_fast: 429 }

export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const server = Fastify({
    forceCloseConnections: true,
    bodyLimit: 1024 * 1024,
    requestTimeout: REQUEST_WITHIN_MS,
    genReqId: () => randomUUID()
  })
  server.addHook('onRequest', async (request, reply) => void reply.header('x-request-id', request.id))
  answerErrors(server, options)
  server.addHook('preValidation', async ({ body }) => refuseDeep(body))
  const drain = registerDrain(server)
  await registerSecurity(server, { ...options, bodies: bodyLimits(options.maxUploadBytes) })
  refuseServers(server, options.senders)
  registerHealth(server, { ...options, drain })
  registerLogin(server, options)
  registerOwner(server, options)
  const models = async (catalog: Promise<ModelCatalog>): Promise<ModelsReply> => {
    return { ...(await catalog), maxHistoryTokens: options.maxHistoryTokens }
  }
  server.get('/api/models', () => models(options.models.catalog()))
  server.post('/api/models/refresh', () => models(options.models.catalog({ refresh: true })))
  registerSessionRoutes(server, options)
  registerInstructions(server, options)
  registerFileRoutes(server, options.sessions, options.files, options.maxUploadBytes)
  registerChangeRoutes(server, options.sessions, options.history)
  registerAttachmentRoutes(server, options.sessions, options.attachments, options.maxUploadBytes)
  registerServerRoutes(server, options)
  registerProviderRoutes(server, options)
  registerApprovalRoutes(server, options.inbox)
  registerRunRoutes(server, options)
  registerExport(server, options.sessions, options.transcript, options)
  registerSearch(server, options.search)
  registerBranch(server, options)
  registerAuditRoutes(server, options.audit, options.sessions)
  // `/mcp` has its own limit (`mcp-limit.ts`), and access was checked before. It needs no browser headers.
  const mcp = { config: { isUncounted: true }, helmet: false, bodyLimit: MAX_MCP_BYTES } as const
  server.all('/mcp', mcp, async (request, reply) => {
    reply.hijack()
    await options.mcp(request.raw, reply.raw, request.body)
  })
  server.get(METRICS_PATH, async (_request, reply) =>
    reply.type('text/plain; version=0.0.4').send(await options.metrics())
  )
  if (existsSync(options.webRoot)) await registerPage(server, options.webRoot)
  server.setNotFoundHandler((_request, reply) => {
    options.refused?.({ face: 'http', code: 'not_found' })
    return reply.code(404).send({ error: { code: 'not_found', message: 'There is nothing at this address.' } })
  })
  await server.ready()
  return { raw: server.server, listen: (at) => listen(server, at), drain, close: () => server.close() }
}

function answerErrors(server: FastifyInstance, options: HttpServerOptions): void {
  server.setErrorHandler((error: FastifyError, request, reply) => {
    // Fastify's own errors (too large, malformed) have a status below 500 and contain no secrets.
    const own = !isAppError(error) && error.statusCode !== undefined && error.statusCode < 500
    // Fastify answers 403 to an impossible path, such as one with a NUL. It is malformed, whoever sends it.
    const malformed = error.statusCode === 403 ? 400 : (error.statusCode ?? 400)
    const status = isAppError(error) ? STATUS[error.kind] : own ? malformed : 500
    const logger = options.logger.child({ requestId: request.id })
    const body = own ? { code: 'invalid_request', message: sentenceOf(error, options) } : wireError(error, logger)
    if ('retryAfterSeconds' in body) reply.header('retry-after', body.retryAfterSeconds)
    const answered = STATUS_OF_CODE[body.code] ?? status
    options.refused?.(refusalOf(request, answered, body, options))
    return reply.code(answered).send({ error: body })
  })
}

function refusalOf(
  request: FastifyRequest,
  status: number,
  { code, reason }: Pick<WireError, 'code' | 'reason'>,
  { addressOf }: HttpServerOptions
): Refusal {
  if (!LOGGED.has(status)) return { face: 'http', code }
  const { id: requestId, method, routeOptions } = request
  const address = addressOf(request.raw)
  const fields = { requestId, method, route: routeOptions.url, status, address }
  const sender = `${address} ${method} ${routeOptions.url}`
  return { face: 'http', code, reason, line: { sentence: 'Request refused.', sender, fields } }
}

/** Keeps Fastify's messages for its own errors, except for uploads that are too large. */
function sentenceOf({ statusCode, message }: FastifyError, { maxUploadBytes }: HttpServerOptions): string {
  if (statusCode !== 413) return message
  return `The file is too large: the limit is ${Math.floor(maxUploadBytes / 1024 / 1024)} MB (MAX_UPLOAD_MB).`
}

async function listen(server: FastifyInstance, at: { port: number; host: string }): Promise<string> {
  try {
    return await server.listen(at)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'EADDRINUSE') {
      const message = `Port ${at.port} is in use: stop what uses it, or set PORT to another one.`
      throw new AppError('conflict', 'port_in_use', message, { cause: error })
    }
    const advice =
      code === 'EACCES'
        ? 'this user may not use that port; set PORT to one from 1024 on'
        : 'set HOST to an address of this machine'
    const message = `Can't listen on port ${at.port} of ${at.host} (${messageOf(error)}): ${advice}.`
    throw new AppError('unavailable', 'listen_failed', message, { cause: error })
  }
}
