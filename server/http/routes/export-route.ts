import type { FastifyInstance } from 'fastify'
import type { SessionSummary } from '../../../contract/rest.ts'
import { callOf, type Transcript } from '../../../contract/transcript.ts'
import { transcriptMarkdown } from '../../../contract/transcript-markdown.ts'
import { AppError } from '../../lib/errors.ts'
import type { AddressOf } from '../../lib/web/client-address.ts'
import type { ImportConversation } from '../../sessions/directory/import-conversation.ts'
import { sharedImages } from '../../sessions/directory/shared-images.ts'
import { type SharedImages, transcriptHtml } from '../../sessions/directory/transcript-html.ts'
import { olderEntries } from '../../sessions/feed/shown-transcript.ts'
import { asTitled } from '../download-name.ts'
import type { ConversationFiles } from './attachment-routes.ts'
import { ownerOf, proofOf, type SessionDirectory } from './session-routes.ts'

const MAX_IMPORT_BYTES = 20 * 1024 * 1024

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

interface Format {
  type: string
  ending: string
  write(summary: SessionSummary, conversation: Transcript, images: SharedImages): string | Promise<string>
  hasImages?: true
}

const FORMATS: Record<string, Format> & { md: Format } = {
  md: {
    type: 'text/markdown',
    ending: 'md',
    write: ({ title }, conversation) => transcriptMarkdown(title, conversation)
  },
  json: {
    type: 'application/json',
    ending: 'json',
    write: (summary, conversation) => JSON.stringify({ summary, conversation }, null, 2)
  },
  html: {
    type: 'text/html',
    ending: 'html',
    write: ({ title }, conversation, images) => transcriptHtml(title, conversation, images),
    hasImages: true
  }
}

/** Without previews: the output of a call that was kept is its result, and nobody else may see that of another. */
function decidedCalls({ calls }: Transcript): Transcript['calls'] {
  return Object.fromEntries(Object.entries(calls).map(([callId, { preview: _, ...call }]) => [callId, call]))
}

interface ExportOptions {
  importConversation: ImportConversation
  addressOf: AddressOf
  attachments: Pick<ConversationFiles, 'read'>
}

/** Imports a conversation, exports it as Markdown, JSON or HTML, and serves it page by page, from the newest entry to the oldest, or one call of it. */
export function registerExport(
  server: FastifyInstance,
  sessions: Pick<SessionDirectory, 'check' | 'summary'>,
  transcript: (sessionId: string) => Promise<Transcript>,
  { importConversation, addressOf, attachments }: ExportOptions
): void {
  server.post('/api/sessions/import', { bodyLimit: MAX_IMPORT_BYTES }, async (request, reply) => {
    const imported = await importConversation(request.body, ownerOf(request), addressOf(request.raw))
    return reply.code(201).send(imported)
  })
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
    const [summary, whole] = await Promise.all([sessions.summary(id), transcript(id)])
    const conversation = { ...whole, calls: decidedCalls(whole) }
    const { format: wanted = 'md' } = request.query
    const format = Object.hasOwn(FORMATS, wanted) ? (FORMATS[wanted] ?? FORMATS.md) : FORMATS.md
    const read = (file: string) => attachments.read(id, file)
    const images = format.hasImages ? await sharedImages(conversation, read) : new Map()
    return reply
      .header('content-type', `${format.type}; charset=utf-8`)
      .header('content-disposition', asTitled(summary.title, format.ending))
      .send(await format.write(summary, conversation, images))
  })
}
