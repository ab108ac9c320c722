import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AppError, isAppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { OWNER_COOKIE, readCookie } from '../../lib/web/browser-proof.ts'
import type { AddressOf } from '../../lib/web/client-address.ts'
import { bearerOf } from '../../sessions/access/instance-access.ts'
import type { Proof } from '../../sessions/access/session-access.ts'
import type {
  SessionDirectory as Directory,
  ListQuery,
  SessionChange
} from '../../sessions/directory/session-directory.ts'

export type SessionDirectory = Pick<
  Directory,
  'open' | 'check' | 'checkDeleted' | 'list' | 'ids' | 'summary' | 'change' | 'hide' | 'restore' | 'destroy'
>

const MAX_LISTED = 1000
const MAX_TITLE_CHARS = 200

type WithId = { Params: { id: string } }
type ListedBy = Partial<Record<'limit' | 'before' | 'title' | 'waiting' | 'archived', string>>

export function registerSessionRoutes(
  server: FastifyInstance,
  { sessions, addressOf }: { sessions: SessionDirectory; addressOf: AddressOf }
): void {
  server.post('/api/sessions', async (request, reply) => {
    const sessionId = randomUUID()
    const options = { wantsToken: true, address: addressOf(request.raw) }
    const { token } = await sessions.open(sessionId, proofOf(request), options)
    return reply.code(201).send({ sessionId, token })
  })

  server.get<{ Querystring: ListedBy }>('/api/sessions', async (request) => {
    return sessions.list(ownerOf(request), listQueryOf(request.query))
  })

  server.delete('/api/sessions', async (request, reply) => {
    for (const sessionId of await sessions.ids(ownerOf(request))) await sessions.destroy(sessionId)
    return reply.code(204).send()
  })

  server.get<WithId>('/api/sessions/:id', async (request) => {
    await sessions.check(request.params.id, proofOf(request))
    return sessions.summary(request.params.id)
  })

  server.patch<WithId & { Body: unknown }>('/api/sessions/:id', async (request) => {
    const { id } = request.params
    await sessions.check(id, proofOf(request))
    await sessions.change(id, changeOf(request.body))
    return sessions.summary(id)
  })

  type Deletion = WithId & { Querystring: { undo?: string } }
  server.delete<Deletion>('/api/sessions/:id', async (request, reply) => {
    const { id } = request.params
    const isForGood = request.query.undo !== 'true'
    await sessions.check(id, proofOf(request)).catch(async (error) => {
      if (!isForGood || !isAppError(error, 'unknown_session')) throw error
      await sessions.checkDeleted(id, proofOf(request))
    })
    if (isForGood) await sessions.destroy(id)
    else await sessions.hide(id)
    return reply.code(204).send()
  })

  server.post<WithId>('/api/sessions/:id/restore', async (request) => {
    const { id } = request.params
    await sessions.checkDeleted(id, proofOf(request))
    await sessions.restore(id)
    return sessions.summary(id)
  })
}

function listQueryOf(query: ListedBy): ListQuery {
  const { limit = String(MAX_LISTED), before, title, waiting, archived = waiting ? 'any' : 'false' } = query
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > MAX_LISTED)
    throw new AppError('invalid', 'invalid_limit', `"limit" is a whole number from 1 to ${MAX_LISTED}.`)
  if (before !== undefined && !/^\d{15}_[\w-]{1,100}$/.test(before))
    throw new AppError('invalid', 'invalid_cursor', '"before" is the "next" of the page that came before.')
  if (title !== undefined && (typeof title !== 'string' || title.length > MAX_TITLE_CHARS))
    throw new AppError('invalid', 'invalid_title', `"title" is one text of at most ${MAX_TITLE_CHARS} characters.`)
  if (waiting !== undefined && waiting !== 'true')
    throw new AppError('invalid', 'invalid_filter', '"waiting" is "true" or is left out.')
  if (!['true', 'false', 'any'].includes(archived))
    throw new AppError('invalid', 'invalid_filter', '"archived" is "true", "false" or "any".')
  const filter = { waiting: waiting === 'true', ...(archived !== 'any' && { archived: archived === 'true' }) }
  return { limit: Number(limit), before, title, ...filter }
}

function changeOf(body: unknown): SessionChange {
  const { title, isPinned, isArchived } = isRecord(body) ? body : {}
  if (title !== undefined && (typeof title !== 'string' || title.trim() === ''))
    throw new AppError('invalid', 'invalid_title', 'A title is a text.')
  const isMark = (value: unknown) => value === undefined || typeof value === 'boolean'
  if (!isMark(isPinned) || !isMark(isArchived) || (title ?? isPinned ?? isArchived) === undefined)
    throw new AppError('invalid', 'invalid_payload', 'Send {title?: a text, isPinned?: boolean, isArchived?: boolean}.')
  return {
    ...(title !== undefined && { title }),
    ...(typeof isPinned === 'boolean' && { isPinned }),
    ...(typeof isArchived === 'boolean' && { isArchived })
  }
}

/** The owner cookie, which was proven before any route runs, or the session token: in its own header, or as Bearer. */
export function proofOf(request: FastifyRequest): Proof {
  const token = request.headers['x-session-token']
  return {
    owner: readCookie(request.headers.cookie, OWNER_COOKIE),
    token: typeof token === 'string' ? token : bearerOf(request.headers)
  }
}

export function ownerOf(request: FastifyRequest): string {
  const owner = readCookie(request.headers.cookie, OWNER_COOKIE)
  if (owner !== undefined) return owner
  throw new AppError('forbidden', 'forbidden', 'Only a browser with its owner cookie and proof has a list of sessions.')
}
