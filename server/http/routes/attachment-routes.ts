import type { FastifyInstance } from 'fastify'
import { isImage, type StoredFile } from '../../../contract/stored-files.ts'
import { AppError } from '../../lib/errors.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

/** The files of a conversation: what people attach to messages, and images in the results of tools. */
export interface ConversationFiles {
  /** Throws if the session may not store anything new. */
  add(sessionId: string, bytes: Buffer): Promise<StoredFile>
  read(sessionId: string, id: string): Promise<{ file: StoredFile; bytes: Buffer } | undefined>
  /** Removes a file that no message has. */
  removeUnsent(sessionId: string, id: string): Promise<void>
}

interface AddRoute {
  Params: { id: string }
  Body: Buffer | undefined
}
interface ReadRoute {
  Params: { id: string; file: string }
}

/** A year: content with this hash never changes. Only the person's own browser may keep it. */
const FOREVER = 'private, max-age=31536000, immutable'

export function registerAttachmentRoutes(
  server: FastifyInstance,
  sessions: Pick<SessionDirectory, 'check'>,
  files: ConversationFiles,
  maxUploadBytes: number
): void {
  server.get<ReadRoute>('/api/sessions/:id/attachments/:file', async (request, reply) => {
    const { id, file: fileId } = request.params
    await sessions.check(id, proofOf(request))
    const found = await files.read(id, fileId)
    if (!found) throw new AppError('not-found', 'attachment_unknown', 'There is no such file in this session.')
    // It is hostile, and this is our origin: only an image may be rendered, nothing in it runs, and its type is not guessed.
    const isShown = isImage(found.file)
    return reply
      .header('content-type', isShown ? found.file.mediaType : 'application/octet-stream')
      .header('content-disposition', isShown ? 'inline' : 'attachment')
      .header('content-security-policy', "default-src 'none'; sandbox")
      .header('x-content-type-options', 'nosniff')
      .header('cache-control', FOREVER)
      .send(found.bytes)
  })

  server.delete<ReadRoute>('/api/sessions/:id/attachments/:file', async (request, reply) => {
    const { id, file } = request.params
    await sessions.check(id, proofOf(request))
    await files.removeUnsent(id, file)
    return reply.code(204).send()
  })

  // In a separate scope, because it accepts bodies of any type unparsed.
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: maxUploadBytes }, (_request, body, done) =>
      done(null, body)
    )
    const options = { bodyLimit: maxUploadBytes }
    scope.post<AddRoute>('/api/sessions/:id/attachments', options, async (request, reply) => {
      const { id } = request.params
      await sessions.check(id, proofOf(request))
      const { body } = request
      if (!body || body.length === 0)
        throw new AppError('invalid', 'attachment_empty', 'The file is empty; choose another one.')
      return reply.code(201).send(await files.add(id, body))
    })
  })
}
