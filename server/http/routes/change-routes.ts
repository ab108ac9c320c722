import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../../lib/errors.ts'
import type { WorkspaceHistory } from '../../sessions/files/workspace-history.ts'
import { asDownload } from '../download-name.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

const MAX_ID_CHARS = 260
const MAX_PATH_CHARS = 16_384

export type ChangeHistory = Pick<WorkspaceHistory, 'versions' | 'changes' | 'revertPlan' | 'content'>

interface ChangeRoute {
  Params: { id: string; changeId: string }
  Querystring: { path?: unknown; side?: unknown; scope?: unknown; before?: unknown }
}

/** Versions of the workspace and changes that wait for a decision. */
export function registerChangeRoutes(
  server: FastifyInstance,
  sessions: Pick<SessionDirectory, 'check'>,
  history: ChangeHistory
): void {
  server.get<ChangeRoute>('/api/sessions/:id/changes', async (request) => {
    await sessions.check(request.params.id, proofOf(request))
    const { before, path } = request.query
    return history.versions(request.params.id, {
      ...(before !== undefined && { before: text(before, 'before', MAX_ID_CHARS) }),
      ...(path !== undefined && { path: text(path, 'path', MAX_PATH_CHARS) })
    })
  })

  server.get<ChangeRoute>('/api/sessions/:id/changes/:changeId', async (request) => {
    const { id, changeId } = request.params
    await sessions.check(id, proofOf(request))
    return history.changes(id, changeId)
  })

  server.get<ChangeRoute>('/api/sessions/:id/changes/:changeId/revert', async (request) => {
    const { id, changeId } = request.params
    await sessions.check(id, proofOf(request))
    return history.revertPlan(id, changeId, choice(request.query.scope, 'scope', ['one', 'since']))
  })

  server.get<ChangeRoute>('/api/sessions/:id/changes/:changeId/content', async (request, reply) => {
    const { id, changeId } = request.params
    await sessions.check(id, proofOf(request))
    const path = text(request.query.path, 'path', MAX_PATH_CHARS)
    const side = choice(request.query.side, 'side', ['before', 'after'])
    const { size, chunks } = await history.content(id, changeId, path, side)
    // Never let the browser render it: a file from the sandbox is hostile, and this is our origin.
    return reply
      .header('content-type', 'application/octet-stream')
      .header('x-content-type-options', 'nosniff')
      .header('content-disposition', asDownload(path))
      .header('content-length', size)
      .send(Readable.from(chunks))
  })
}

function text(value: unknown, name: string, maxChars: number): string {
  if (typeof value === 'string' && value !== '' && value.length <= maxChars) return value
  throw new AppError('invalid', 'invalid_filter', `"${name}" must be a text of at most ${maxChars} characters.`)
}

function choice<T extends string>(value: unknown, name: string, allowed: readonly T[]): T {
  const chosen = allowed.find((each) => each === value)
  if (chosen !== undefined) return chosen
  throw new AppError('invalid', 'invalid_filter', `"${name}" must be ${allowed.join(' or ')}.`)
}
