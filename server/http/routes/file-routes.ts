import { basename } from 'node:path/posix'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { AppError } from '../../lib/errors.ts'
import type { WorkspaceTransfer } from '../../sessions/files/workspace-transfer.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

export type FileTransfer = Pick<WorkspaceTransfer, 'list' | 'read' | 'write' | 'archive'>

interface FileRoute {
  Params: { id: string }
  Querystring: { path?: string }
}

export function registerFileRoutes(
  server: FastifyInstance,
  sessions: Pick<SessionDirectory, 'check'>,
  files: FileTransfer,
  maxUploadBytes: number
): void {
  server.get<FileRoute>('/api/sessions/:id/files', async (request) => {
    await sessions.check(request.params.id, proofOf(request))
    return { ...(await files.list(request.params.id)), maxUploadBytes }
  })

  server.get<FileRoute>('/api/sessions/:id/file', async (request, reply) => {
    const { id } = request.params
    await sessions.check(id, proofOf(request))
    const path = pathOf(request.query)
    const { size, chunks } = await files.read(id, path)
    // Never let the browser render it: a file from the sandbox is hostile, and this is our origin.
    return reply
      .header('content-type', 'application/octet-stream')
      .header('content-disposition', `attachment; filename*=UTF-8''${encodeURIComponent(basename(path))}`)
      .header('content-length', size)
      .send(Readable.from(chunks))
  })

  server.get<FileRoute>('/api/sessions/:id/archive', async (request, reply) => {
    await sessions.check(request.params.id, proofOf(request))
    const archive = await files.archive(request.params.id)
    return reply
      .header('content-type', 'application/gzip')
      .header('content-disposition', 'attachment; filename="workspace.tar.gz"')
      .send(archive)
  })

  // In a separate scope, because it accepts bodies of any type unparsed.
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: maxUploadBytes }, (_request, body, done) =>
      done(null, body)
    )
    scope.put<FileRoute & { Body: Buffer | undefined }>(
      '/api/sessions/:id/file',
      { bodyLimit: maxUploadBytes },
      async (request, reply) => {
        const { id } = request.params
        await sessions.check(id, proofOf(request))
        await files.write(id, pathOf(request.query), request.body ?? Buffer.alloc(0))
        return reply.code(204).send()
      }
    )
  })
}

function pathOf({ path }: { path?: string }): string {
  if (typeof path === 'string' && path !== '') return path
  throw new AppError('invalid', 'path_missing', 'Name the file: ?path=…')
}
