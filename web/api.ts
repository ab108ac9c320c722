/** The HTTP API, as the page calls it. Same origin only; the cookies go along by themselves, the proof in a header. */

import type { AuditReply } from '../contract/audit.ts'
import type {
  BranchRequest,
  ChangeSide,
  ChangesReply,
  RevertPlanReply,
  VersionsReply
} from '../contract/effects/effect-replies.ts'
import type {
  ApprovalAnswer,
  ApprovalCard,
  ApprovalsReply,
  EntriesReply,
  ErrorReply,
  FileListing,
  InstructionsReply,
  ModelsReply,
  OwnerReply,
  ProviderKeysReply,
  RunsReply,
  SearchReply,
  SessionSummary,
  SessionsReply
} from '../contract/rest.ts'
import type { ChangeRule, EditServer, EntryDraft } from '../contract/servers/entry-edits.ts'
import type { ImportReply, ImportServers } from '../contract/servers/import.ts'
import type { GetPrompt, OffersReply, PromptReply, ResourceReply } from '../contract/servers/offers.ts'
import type {
  AddedReply,
  AddServers,
  ServerDetail,
  ServersReply,
  TestReply,
  ToolTrial,
  ToolTrialReply,
  TriedTool
} from '../contract/servers/servers.ts'
import type { StoredFile } from '../contract/stored-files.ts'
import type { CallEntry } from '../contract/transcript.ts'
import { markAsOwner, ownerProof, wasOwner } from './owner-proof.ts'

export interface Health {
  ok: boolean
  [part: string]: boolean | { ok: boolean; detail: string }
}

export class ApiError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const isOffline = (error: unknown): boolean => error instanceof ApiError && error.code === 'offline'

/** A timeout for connections that died silently, for example while the computer was asleep. */
const TIMEOUT_MS = 30_000
/** Timeout of file transfers and of requests that start or stop something. */
const SLOW_TIMEOUT_MS = 300_000

/** Sent with requests about servers and with approvals. Kept in memory only, so that nothing else on this origin can read it later. */
let adminToken = ''
export function setAdminToken(token: string): void {
  adminToken = token
}
function adminHeaders(path: string): Record<string, string> {
  return adminToken !== '' && /^\/api\/(servers|approvals|runs|providers)\b/.test(path)
    ? { 'x-admin-token': adminToken }
    : {}
}

async function request(path: string, init?: RequestInit, withinMs = TIMEOUT_MS): Promise<Response> {
  await becomeOwner()
  const response = await send(path, init, withinMs)
  if (response.ok) return response
  const error = await errorOf(response)
  // The cookie has changed or vanished since this page was loaded, or there were two and the reply has removed one.
  if (!OWNER_PROBLEMS.includes(error.code)) throw error
  forgetOwner()
  await becomeOwner()
  return expectOk(await send(path, init, withinMs))
}

async function expectOk(response: Response): Promise<Response> {
  if (response.ok) return response
  throw await errorOf(response)
}

export const OWNER_PROBLEMS = ['owner_unproven', 'two_owner_cookies']

async function send(path: string, init: RequestInit = {}, withinMs = TIMEOUT_MS): Promise<Response> {
  const headers = { ...init.headers, ...adminHeaders(path), 'x-owner-proof': ownerProof() }
  try {
    return await fetch(path, { ...init, headers, signal: AbortSignal.timeout(withinMs) })
  } catch (error) {
    throw fetchError(error)
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const body: Partial<ErrorReply> = await response.json().catch(() => ({}))
  return new ApiError(body.error?.code ?? 'failed', body.error?.message ?? `The server answered ${response.status}.`)
}

let isOwner = false
let entering: Promise<void> | undefined
let news: 'lost' | 'new' | null = null

/** Proves to the server which owner this page is, or becomes a new owner. Done once per page. */
export async function becomeOwner(): Promise<void> {
  if (isOwner) return
  entering ??= oneTabAtATime(askForOwner).finally(() => {
    entering = undefined
  })
  return entering
}

export function forgetOwner(): void {
  isOwner = false
}

/** Returns news for the person, once. `lost`: this browser was another owner before. */
export function takeOwnerNews(): typeof news {
  const taken = news
  news = null
  return taken
}

async function askForOwner(): Promise<void> {
  const wasKnown = wasOwner()
  const ask = () => send('/api/owner', { method: 'POST' })
  let response = await ask()
  // The first reply may have removed a second cookie that another program had set.
  if (response.status === 403) response = await ask()
  const { isKnown } = await jsonOf<OwnerReply>(await expectOk(response))
  if (!isKnown) news = wasKnown ? 'lost' : 'new'
  markAsOwner()
  isOwner = true
}

/** Locks exist only under TLS and on localhost; elsewhere two tabs that are opened first in the same moment may become two owners. */
function oneTabAtATime<T>(work: () => Promise<T>): Promise<T> {
  return navigator.locks ? navigator.locks.request('mcp-orchestrator:owner', work) : work()
}

function fetchError(error: unknown): ApiError {
  const isLate = error instanceof DOMException && error.name === 'TimeoutError'
  if (isLate) return new ApiError('no_answer', 'The server has not answered in time.')
  return new ApiError('offline', 'The server cannot be reached right now.')
}

async function json<T>(path: string, init?: RequestInit, withinMs?: number): Promise<T> {
  return jsonOf<T>(await request(path, init, withinMs))
}

async function jsonOf<T>(response: Response): Promise<T> {
  try {
    return await response.json()
  } catch (error) {
    throw fetchError(error)
  }
}

function jsonBody(method: string, body: object): RequestInit {
  return { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

const session = (id: string) => `/api/sessions/${encodeURIComponent(id)}`
const server = (name: string) => `/api/servers/${encodeURIComponent(name)}`
const fileUrl = (id: string, path: string) => `${session(id)}/file?path=${encodeURIComponent(path)}`
const archiveUrl = (id: string) => `${session(id)}/archive`
export type ExportFormat = 'md' | 'json' | 'html'
const changeUrl = (id: string, changeId: string) => `${session(id)}/changes/${encodeURIComponent(changeId)}`
const exportUrl = (id: string, format: ExportFormat) => `${session(id)}/export?format=${format}`

export interface SessionsQuery {
  limit: number
  /** A part of the title. */
  title?: string
  /** Only sessions with calls that need approval. */
  waiting?: true
  /** Without it, archived sessions are left out. */
  archived?: 'true' | 'any'
}
export interface SessionChange {
  title?: string
  isPinned?: boolean
  isArchived?: boolean
}
function search(query: Record<string, unknown>): URLSearchParams {
  return new URLSearchParams(Object.entries(query).flatMap(([key, value]) => (value ? [[key, String(value)]] : [])))
}

export const api = {
  models: () => json<ModelsReply>('/api/models'),
  refreshModels: () => json<ModelsReply>('/api/models/refresh', { method: 'POST' }, SLOW_TIMEOUT_MS),
  providers: () => json<ProviderKeysReply>('/api/providers'),
  setProviderKey: (id: string, apiKey: string) =>
    request(`/api/providers/${encodeURIComponent(id)}/key`, jsonBody('PUT', { apiKey }), SLOW_TIMEOUT_MS),
  removeProviderKey: (id: string) => request(`/api/providers/${encodeURIComponent(id)}/key`, { method: 'DELETE' }),
  instructions: () => json<InstructionsReply>('/api/instructions'),
  changeInstructions: (text: string) => json<InstructionsReply>('/api/instructions', jsonBody('PUT', { text })),
  sessions: (query: SessionsQuery) => json<SessionsReply>(`/api/sessions?${search({ ...query })}`),
  session: (id: string) => json<SessionSummary>(session(id)),
  entries: (id: string, before: number) => json<EntriesReply>(`${session(id)}/entries?before=${before}`),
  changeSession: (id: string, change: SessionChange) => json<SessionSummary>(session(id), jsonBody('PATCH', change)),
  importSession: (body: Blob) =>
    json<SessionSummary>(
      '/api/sessions/import',
      { method: 'POST', headers: { 'content-type': 'application/json' }, body },
      SLOW_TIMEOUT_MS
    ),
  search: (text: string, sessionId?: string) =>
    json<SearchReply>(`/api/search?${search({ q: text, session: sessionId })}`),
  call: (id: string, callId: string) => json<CallEntry>(`${session(id)}/calls/${encodeURIComponent(callId)}`),
  /** It can be brought back for a moment. */
  deleteSession: (id: string) => request(`${session(id)}?undo=true`, { method: 'DELETE' }, SLOW_TIMEOUT_MS),
  restoreSession: (id: string) => request(`${session(id)}/restore`, { method: 'POST' }),
  deleteAllSessions: () => request('/api/sessions', { method: 'DELETE' }, SLOW_TIMEOUT_MS),
  files: (id: string) => json<FileListing>(`${session(id)}/files`, {}, SLOW_TIMEOUT_MS),
  folder: (id: string, path: string) =>
    json<FileListing>(`${session(id)}/files?path=${encodeURIComponent(path)}`, {}, SLOW_TIMEOUT_MS),
  file: (id: string, path: string) => request(fileUrl(id, path), {}, SLOW_TIMEOUT_MS),
  addAttachment: (id: string, body: Blob) =>
    json<StoredFile>(
      `${session(id)}/attachments`,
      { method: 'POST', body, headers: { 'content-type': 'application/octet-stream' } },
      SLOW_TIMEOUT_MS
    ),
  attachment: (id: string, file: string) => request(`${session(id)}/attachments/${file}`, {}, SLOW_TIMEOUT_MS),
  removeAttachment: (id: string, file: string) => request(`${session(id)}/attachments/${file}`, { method: 'DELETE' }),
  archive: (id: string) => request(archiveUrl(id), {}, SLOW_TIMEOUT_MS),
  export: (id: string, format: ExportFormat) => request(exportUrl(id, format), {}, SLOW_TIMEOUT_MS),
  upload: (id: string, path: string, body: Blob) =>
    request(
      fileUrl(id, path),
      { method: 'PUT', body, headers: { 'content-type': 'application/octet-stream' } },
      SLOW_TIMEOUT_MS
    ),
  /** Replaces only the file with this `etag`, or with null only nothing. */
  saveFile: (id: string, path: string, body: Blob, etag: string | null) => {
    const condition: Record<string, string> = etag === null ? { 'if-none-match': '*' } : { 'if-match': etag }
    const headers = { 'content-type': 'application/octet-stream', ...condition }
    return request(fileUrl(id, path), { method: 'PUT', body, headers }, SLOW_TIMEOUT_MS)
  },
  deleteFile: (id: string, path: string) => request(fileUrl(id, path), { method: 'DELETE' }, SLOW_TIMEOUT_MS),
  makeFolder: (id: string, path: string) =>
    request(`${session(id)}/folder`, jsonBody('POST', { path }), SLOW_TIMEOUT_MS),
  moveFile: (id: string, from: string, to: string) =>
    request(`${session(id)}/move`, jsonBody('POST', { from, to }), SLOW_TIMEOUT_MS),
  branch: (id: string, request: BranchRequest) =>
    json<SessionSummary>(`${session(id)}/branch`, jsonBody('POST', request), SLOW_TIMEOUT_MS),
  /** All files of a version of the workspace, or of changes that wait for a decision. */
  changes: (id: string, changeId: string) => json<ChangesReply>(changeUrl(id, changeId), {}, SLOW_TIMEOUT_MS),
  changeContent: (id: string, changeId: string, path: string, side: ChangeSide) =>
    request(`${changeUrl(id, changeId)}/content?${search({ path, side })}`, {}, SLOW_TIMEOUT_MS),
  versions: (id: string, query: { before?: string; path?: string }) =>
    json<VersionsReply>(`${session(id)}/changes?${search(query)}`, {}, SLOW_TIMEOUT_MS),
  revertPlan: (id: string, changeId: string, scope: 'one' | 'since') =>
    json<RevertPlanReply>(`${changeUrl(id, changeId)}/revert?${search({ scope })}`, {}, SLOW_TIMEOUT_MS),
  audit: (query: Record<string, string | undefined>) => json<AuditReply>(`/api/audit?${search(query)}`),
  servers: () => json<ServersReply>('/api/servers'),
  server: (name: string) => json<ServerDetail>(server(name)),
  addServers: <T>(servers: AddServers) => json<T>('/api/servers', jsonBody('POST', servers)),
  entry: (name: string) => json<EntryDraft>(`${server(name)}/entry`),
  editServer: <T>(name: string, edit: EditServer) => json<T>(server(name), jsonBody('PUT', edit)),
  changeRule: (name: string, change: ChangeRule) => request(`${server(name)}/rules`, jsonBody('PUT', change)),
  serverLog: (name: string) => json<{ log: string }>(`${server(name)}/log`),
  importable: (moveSecrets: boolean) => json<ImportReply>(`/api/servers-import?${search({ moveSecrets })}`),
  importServers: (wish: ImportServers) => json<AddedReply>('/api/servers-import', jsonBody('POST', wish)),
  testServer: (name: string) => json<TestReply>(`${server(name)}/test`, jsonBody('POST', {}), SLOW_TIMEOUT_MS),
  /** Starts the server if necessary. */
  tool: (name: string, tool: string) =>
    json<TriedTool>(`${server(name)}/tools/${encodeURIComponent(tool)}`, {}, SLOW_TIMEOUT_MS),
  offers: (name: string) => json<OffersReply>(`${server(name)}/offers`, {}, SLOW_TIMEOUT_MS),
  resource: (name: string, uri: string) =>
    json<ResourceReply>(`${server(name)}/resource`, jsonBody('POST', { uri }), SLOW_TIMEOUT_MS),
  prompt: (name: string, prompt: GetPrompt) =>
    json<PromptReply>(`${server(name)}/prompt`, jsonBody('POST', prompt), SLOW_TIMEOUT_MS),
  tryTool: (name: string, trial: ToolTrial) =>
    json<ToolTrialReply>(`${server(name)}/call`, jsonBody('POST', trial), SLOW_TIMEOUT_MS),
  restartServer: (name: string) => request(`${server(name)}/restart`, jsonBody('POST', {}), SLOW_TIMEOUT_MS),
  switchServer: (name: string, how: 'enable' | 'disable') => request(`${server(name)}/${how}`, jsonBody('POST', {})),
  acceptServer: (name: string, hash: string) => request(`${server(name)}/accept`, jsonBody('POST', { hash })),
  removeServer: (name: string) => request(server(name), { method: 'DELETE' }),
  approvals: () => json<ApprovalsReply>('/api/approvals'),
  answerApproval: ({ id, hash }: ApprovalCard, answer: ApprovalAnswer) =>
    request(`/api/approvals/${encodeURIComponent(id)}`, jsonBody('POST', { ...answer, hash })),
  runs: () => json<RunsReply>('/api/runs'),
  cancelRun: (id: string) => request(`/api/runs/${encodeURIComponent(id)}/cancel`, { method: 'POST' }),
  login: async (token: string) => expectOk(await send('/api/login', jsonBody('POST', { token }))),
  /** Whether the server answers now. */
  isReachable: async (): Promise<boolean> => {
    const response = await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(5000) }).catch(() => null)
    return response !== null
  },
  /** Returns the report whether the server is healthy or not. */
  health: async (): Promise<Health | null> => {
    try {
      return await (await send('/readyz')).json()
    } catch {
      return null
    }
  }
}
