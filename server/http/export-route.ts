import type { FastifyInstance } from 'fastify'
import type { Transcript } from '../../contract/transcript.ts'
import { transcriptMarkdown } from '../../contract/transcript-markdown.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

interface ExportRoute {
  Params: { id: string }
  Querystring: { format?: string }
}

/** The conversation as a file: Markdown to read, JSON to keep. */
export function registerExport(
  server: FastifyInstance,
  sessions: Pick<SessionDirectory, 'check' | 'summary'>,
  transcript: (sessionId: string) => Promise<Transcript>
): void {
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
