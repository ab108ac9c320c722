import type { FastifyInstance } from 'fastify'
import { callOf, type Transcript } from '../../../contract/transcript.ts'
import { transcriptMarkdown } from '../../../contract/transcript-markdown.ts'
import { AppError } from '../../lib/errors.ts'
import { olderEntries } from '../../sessions/feed/shown-transcript.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

interface EntriesRoute {
  Params: { id: string }
  Querystring: { before?: string }
}

interface CallRoute {
  Params: { id: string; callId: string }
}

interface ExportRoute {
  Params: { id: string }
  Querystring: { format?: string }
}

/** Exports a conversation as Markdown or JSON, and serves it page by page, from the newest entry to the oldest, or one call of it. */
export function registerExport(
  server: FastifyInstance,
  sessions: Pick<SessionDirectory, 'check' | 'summary'>,
  transcript: (sessionId: string) => Promise<Transcript>
): void {
  server.get<EntriesRoute>('/api/sessions/:id/entries', async (request) => {
    const { id } = request.params
    await sessions.check(id, proofOf(request))
    const before = Number(request.query.before ?? Number.MAX_SAFE_INTEGER)
    if (!Number.isSafeInteger(before) || before < 1)
      throw new AppError('invalid', 'invalid_cursor', '"before" is the olderBefore of the page that came before.')
    return olderEntries(await transcript(id), before)
  })
  server.get<CallRoute>('/api/sessions/:id/calls/:callId', async (request) => {
    const { id, callId } = request.params
    await sessions.check(id, proofOf(request))
    const call = callOf(await transcript(id), callId)
    if (!call) throw new AppError('not-found', 'unknown_call', 'There is no such call in this session.')
    return call
  })
  server.get<ExportRoute>('/api/sessions/:id/export', async (request, reply) => {
    const { id } = request.params
    await sessions.check(id, proofOf(request))
    const [summary, conversation] = await Promise.all([sessions.summary(id), transcript(id)])
    const markdown = request.query.format !== 'json'
    const body = markdown
      ? transcriptMarkdown(summary.title, conversation)
      : JSON.stringify({ summary, conversation }, null, 2)
    return reply
      .header('content-type', `${markdown ? 'text/markdown' : 'application/json'}; charset=utf-8`)
      .header('content-disposition', `attachment; filename="conversation.${markdown ? 'md' : 'json'}"`)
      .send(body)
  })
}
