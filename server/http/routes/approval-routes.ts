import type { FastifyInstance } from 'fastify'
import type { ApprovalsReply } from '../../../contract/rest.ts'
import { AppError } from '../../lib/errors.ts'
import type { ApprovalInbox } from '../../policy/approval-inbox.ts'

export type Inbox = Pick<ApprovalInbox, 'open' | 'answer'>

type Body = { approved?: unknown; hash?: unknown; reason?: unknown } | null
const MAX_REASON = 500

/** Everyone with access sees all of the inbox, because outside clients have no session here. */
export function registerApprovalRoutes(server: FastifyInstance, inbox: Inbox): void {
  // Not counted: every open page polls every other second, and those of one office would lock each other out.
  const polled = { config: { isUncounted: true } } as const
  server.get('/api/approvals', polled, async (): Promise<ApprovalsReply> => {
    return { approvals: await inbox.open(), now: Date.now() }
  })

  server.post<{ Params: { id: string }; Body: Body }>('/api/approvals/:id', async (request, reply) => {
    const { approved, hash, reason, ...unknown } = request.body ?? {}
    const isText = reason === undefined || (typeof reason === 'string' && reason.length <= MAX_REASON)
    if (typeof approved !== 'boolean' || typeof hash !== 'string' || !isText || Object.keys(unknown).length > 0) {
      const message = `Send {approved: true or false, hash: that of the card, reason?: at most ${MAX_REASON} characters}, and nothing else.`
      throw new AppError('invalid', 'invalid_payload', message)
    }
    await inbox.answer(request.params.id, hash, { approved, ...(reason ? { reason } : {}) })
    return reply.code(204).send()
  })
}
