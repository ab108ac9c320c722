import type { FastifyInstance } from 'fastify'
import { type AuditEntry, type AuditQuery, type AuditReply, auditQuery } from '../../../contract/audit.ts'
import { AppError } from '../../lib/errors.ts'
import type { OwnerOf } from './server-routes.ts'

export interface AuditReader {
  read(query: AuditQuery, allowed: (entry: AuditEntry) => boolean): Pick<AuditReply, 'entries' | 'next'>
  /** The name under which an owner's rows are kept, from the request's cookies. */
  ownerOf: OwnerOf
  readonly problem: string | undefined
}

/** What was decided and called: the gateway's for whoever may come in here, a chat's or another owner's for that owner alone. */
export function registerAuditRoutes(server: FastifyInstance, audit: AuditReader): void {
  server.get('/api/audit', async (request): Promise<AuditReply> => {
    const query = auditQuery.safeParse(request.query)
    if (!query.success) {
      const [issue] = query.error.issues
      throw new AppError('invalid', 'invalid_request', `"${issue?.path.join('.')}" is not usable: ${issue?.message}.`)
    }
    const owner = audit.ownerOf(request.headers.cookie)
    const page = audit.read(query.data, (entry) => {
      return entry.owner === owner || entry.owner === 'local'
    })
    return { ...page, ...(audit.problem === undefined ? {} : { problem: audit.problem }) }
  })
}
