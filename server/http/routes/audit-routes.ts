import type { FastifyInstance } from 'fastify'
import { type AuditEntry, type AuditQuery, type AuditReply, auditQuery } from '../../../contract/audit.ts'
import { AppError } from '../../lib/errors.ts'
import type { OwnerOf } from './server-routes.ts'

export interface AuditReader {
  read(query: AuditQuery, allowed: (entry: AuditEntry) => boolean): Pick<AuditReply, 'entries' | 'next'>
  /** The name of the owner in the audit log, from the cookies of the request. */
  ownerOf: OwnerOf
  readonly problem: string | undefined
}

/** The audit log. Everyone with access sees the rows of the gateway; only the owner sees those of a chat. */
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
