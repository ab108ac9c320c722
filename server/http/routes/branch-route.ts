import type { FastifyInstance } from 'fastify'
import type { BranchRequest } from '../../../contract/effects/effect-replies.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { AddressOf } from '../../lib/web/client-address.ts'
import type { BranchSession } from '../../sessions/directory/branch-session.ts'
import { proofOf, type SessionDirectory } from './session-routes.ts'

interface BranchOptions {
  sessions: Pick<SessionDirectory, 'check'>
  branchSession: BranchSession
  addressOf: AddressOf
}

/** Continues a conversation from an earlier point in a new session. */
export function registerBranch(server: FastifyInstance, { sessions, branchSession, addressOf }: BranchOptions): void {
  server.post<{ Params: { id: string }; Body: unknown }>('/api/sessions/:id/branch', async (request, reply) => {
    const { id } = request.params
    const proof = proofOf(request)
    await sessions.check(id, proof)
    const who = { proof, address: addressOf(request.raw) }
    return reply.code(201).send(await branchSession(id, requestOf(request.body), who))
  })
}

function requestOf(body: unknown): BranchRequest {
  const { before, files } = isRecord(body) ? body : {}
  if (!Number.isSafeInteger(before) || Number(before) < 1 || (files !== 'now' && files !== 'then'))
    throw new AppError('invalid', 'invalid_payload', 'Send {before: the seq of an event, files: "now" or "then"}.')
  return { before: Number(before), files }
}
