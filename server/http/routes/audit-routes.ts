import type { FastifyInstance } from 'fastify'
import { type AuditEntry, type AuditQuery, type AuditReply, auditQuery } from '../../../contract/audit.ts'
import { AppError } from '../../lib/errors.ts'
import type { Proof } from '../../sessions/access/session-access.ts'
import type { OwnerOf } from './servers/server-routes.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

export interface AuditReader {
  read(query: AuditQuery, allowed: (entry: AuditEntry) => boolean): Promise<Pick<AuditReply, 'entries' | 'next'>>
  /** A line about a call of a chat, from the log of its session. The reader must be allowed to open that session. */
  about(entry: AuditEntry): Promise<string | undefined>
  /** The name of the owner in the audit log, from the cookies of the request. */
  ownerOf: OwnerOf
  readonly problem: string | undefined
}

type Sessions = Pick<SessionDirectory, 'check'>

/** Maximum number of entries that a text search reads for one reply, in one pass: each pass reads the log from its end. */
const MAX_SEARCHED = 4000

/** The audit log. Everyone with access sees the rows of the gateway; only the owner sees those of a chat. */
export function registerAuditRoutes(server: FastifyInstance, audit: AuditReader, sessions: Sessions): void {
  server.get('/api/audit', async (request): Promise<AuditReply> => {
    const query = auditQuery.safeParse(request.query)
    if (!query.success) {
      const [issue] = query.error.issues
      throw new AppError('invalid', 'invalid_request', `"${issue?.path.join('.')}" is not usable: ${issue?.message}.`)
    }
    const owner = audit.ownerOf(request.headers.cookie)
    const read = (part: AuditQuery) => audit.read(part, (entry) => entry.owner === owner || entry.owner === 'local')
    const complete = completer(audit, sessions, proofOf(request))
    const page = await find(query.data, read, complete)
    return { ...page, ...(audit.problem === undefined ? {} : { problem: audit.problem }) }
  })
}

/** The audit log does not say what a call was about, so a text can only be found in completed entries. */
async function find(
  query: AuditQuery,
  read: (query: AuditQuery) => Promise<Pick<AuditReply, 'entries' | 'next'>>,
  complete: (entry: AuditEntry) => Promise<AuditEntry>
): Promise<Pick<AuditReply, 'entries' | 'next'>> {
  const { text, limit, ...others } = query
  const found: AuditEntry[] = []
  if (text === undefined || text.trim() === '') {
    const { entries, next } = await read(query)
    for (const entry of entries) found.push(await complete(entry))
    return { entries: found, next }
  }
  const { entries, next } = await read({ ...others, limit: MAX_SEARCHED })
  for (const entry of entries) {
    const completed = await complete(entry)
    if (!contains(completed, text)) continue
    found.push(completed)
    if (found.length === limit) return { entries: found, next: entry.id }
  }
  return { entries: found, next }
}

/** Links a row to its chat only if the reader's own proof opens that chat; the owner in the row is not enough. */
function completer(audit: AuditReader, sessions: Sessions, proof: Proof): (entry: AuditEntry) => Promise<AuditEntry> {
  const mayOpen = new Map<string, Promise<boolean>>()
  const check = (id: string) =>
    sessions.check(id, proof).then(
      () => true,
      () => false
    )
  return async (entry) => {
    const { door, session } = entry
    if (door !== 'chat' || session === undefined) return entry
    const known = mayOpen.get(session) ?? check(session)
    mayOpen.set(session, known)
    if (!(await known)) return entry
    const about = await audit.about(entry).catch(() => undefined)
    return { ...entry, mayOpen: true, ...(about !== undefined && { about }) }
  }
}

function contains(entry: AuditEntry, text: string): boolean {
  const { server, tool, client, code, request, about, by } = entry
  const parts = [`${server ?? ''} / ${tool ?? ''}`, client, code, request, about, entry.arguments, by]
  return parts.some((part) => part?.toLowerCase().includes(text.trim().toLowerCase()))
}
