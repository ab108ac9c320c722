import type { FastifyInstance } from 'fastify'
import type { SearchReply } from '../../../contract/rest.ts'
import { AppError } from '../../lib/errors.ts'
import { MAX_SEARCH_CHARS, type SessionSearch } from '../../sessions/directory/session-search.ts'
import { ownerOf } from './session-routes.ts'

/** Searches the titles and messages of the owner's sessions, archived ones included, or of one session. */
export function registerSearch(server: FastifyInstance, search: Pick<SessionSearch, 'find'>): void {
  server.get<{ Querystring: { q?: unknown; session?: unknown } }>(
    '/api/search',
    async (request): Promise<SearchReply> => {
      const { q, session } = request.query
      const owner = ownerOf(request)
      if (session !== undefined && typeof session !== 'string')
        throw new AppError('invalid', 'invalid_search', '"session" is the id of one session.')
      if (typeof q === 'string' && q.length <= MAX_SEARCH_CHARS) return search.find(owner, q, session)
      throw new AppError('invalid', 'invalid_search', `"q" is one text of at most ${MAX_SEARCH_CHARS} characters.`)
    }
  )
}
