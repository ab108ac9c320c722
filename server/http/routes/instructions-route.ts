import type { FastifyInstance } from 'fastify'
import type { InstructionsReply } from '../../../contract/rest.ts'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { PersonInstructions } from '../../sessions/access/person-instructions.ts'
import { ownerName } from '../../sessions/access/session-access.ts'
import { ownerOf, type SessionDirectory } from './session-routes.ts'

interface InstructionsOptions {
  instructions: Pick<PersonInstructions, 'of' | 'change'>
  sessions: Pick<SessionDirectory, 'ids'>
  logger: Logger
}

/** Instructions of this browser's person to the model, for all their sessions. */
export function registerInstructions(server: FastifyInstance, options: InstructionsOptions): void {
  const { instructions, sessions, logger } = options
  server.get('/api/instructions', async (request): Promise<InstructionsReply> => {
    return { text: await instructions.of(ownerName(ownerOf(request))) }
  })

  server.put<{ Body: { text?: unknown } | null }>('/api/instructions', async (request): Promise<InstructionsReply> => {
    const cookie = ownerOf(request)
    // Sessions are limited, so made-up owners can't fill the store with instructions.
    if ((await sessions.ids(cookie)).length === 0)
      throw new AppError('conflict', 'no_session', 'Open a session before you write instructions for all of them.')
    const text = await instructions.change(ownerName(cookie), request.body?.text)
    logger.info({ owner: ownerName(cookie).slice(0, 8), chars: text.length }, 'A person changed their instructions.')
    return { text }
  })
}
