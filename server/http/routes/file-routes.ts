import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { EDIT_BYTES } from '../../../contract/rest.ts'
import { AppError } from '../../lib/errors.ts'
import type { WorkspaceTransfer } from '../../sessions/files/workspace-transfer.ts'
import { asDownload } from '../download-name.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

const MAX_PATH_CHARS = 4096

export type FileTransfer = Pick<WorkspaceTransfer, 'list' | 'read' | 'write' | 'archive' | 'change' | 'replace'>

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
    return { ...(await files.list(request.params.id, folderOf(request.query))), maxUploadBytes }
  })

  server.get<FileRoute>('/api/sessions/:id/file', async (request, reply) => {
    const { id } = request.params
    await sessions.check(id, proofOf(request))
    const path = pathOf(request.query)
    const { size, chunks } = await files.read(id, path)
    const small = size <= EDIT_BYTES ? await buffer(chunks) : undefined
    if (small) reply.header('etag', `"${createHash('sha256').update(small).digest('hex')}"`)
    // Never let the browser render it: a file from the sandbox is hostile, and this is our origin.
    return reply
      .header('content-type', 'application/octet-stream')
      .header('content-disposition', asDownload(path))
      .header('content-length', size)
      .send(small ?? Readable.from(chunks))
  })

  server.get<FileRoute>('/api/sessions/:id/archive', async (request, reply) => {
    await sessions.check(request.params.id, proofOf(request))
    const archive = await files.archive(request.params.id)
    return reply
      .header('content-type', 'application/gzip')
      .header('content-disposition', 'attachment; filename="workspace.tar.gz"')
      .send(archive)
  })

  registerChanges(server, sessions, files)

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
        const [path, content, expected] = [pathOf(request.query), request.body ?? Buffer.alloc(0), expectedOf(request)]
        if (expected === undefined) await files.write(id, path, content)
        else await files.replace(id, path, content, expected)
        return reply.code(204).send()
      }
    )
  })
}

function registerChanges(
  server: FastifyInstance,
  sessions: Pick<SessionDirectory, 'check'>,
  files: Pick<FileTransfer, 'change'>
): void {
  server.delete<FileRoute>('/api/sessions/:id/file', async (request, reply) => {
    await sessions.check(request.params.id, proofOf(request))
    await files.change(request.params.id, { kind: 'delete', path: pathOf(request.query) })
    return reply.code(204).send()
  })

  type WithBody = FileRoute & { Body: { path?: unknown; from?: unknown; to?: unknown } | null }
  server.post<WithBody>('/api/sessions/:id/folder', async (request, reply) => {
    await sessions.check(request.params.id, proofOf(request))
    await files.change(request.params.id, { kind: 'folder', path: pathOf(request.body ?? {}) })
    return reply.code(204).send()
  })

  server.post<WithBody>('/api/sessions/:id/move', async (request, reply) => {
    await sessions.check(request.params.id, proofOf(request))
    const { from, to } = request.body ?? {}
    await files.change(request.params.id, { kind: 'move', path: pathOf({ path: from }), to: pathOf({ path: to }) })
    return reply.code(204).send()
  })
}

/** undefined: write whatever is there. null: only if there is nothing. Otherwise the hash of what must be there. */
function expectedOf({ headers }: FastifyRequest): string | null | undefined {
  if (headers['if-none-match'] === '*') return null
  const match = headers['if-match']
  if (match === undefined) return undefined
  const hash = /^"([0-9a-f]{64})"$/.exec(match)?.[1]
  if (hash !== undefined) return hash
  throw new AppError('invalid', 'invalid_match', '"if-match" is the "etag" of the file as it was downloaded.')
}

/** An empty path is the workspace itself; without one, everything is listed. */
function folderOf({ path }: { path?: string }): string | undefined {
  return path === undefined || path === '' ? path : pathOf({ path })
}

function pathOf({ path }: { path?: unknown }): string {
  if (typeof path === 'string' && path !== '' && path.length <= MAX_PATH_CHARS) return path
  throw new AppError('invalid', 'path_missing', 'Name the file: ?path=…')
}
