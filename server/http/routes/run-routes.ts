import type { FastifyInstance } from 'fastify'
import type { RunsReply } from '../../../contract/rest.ts'
import { LOCAL_OWNER } from '../../calls/caller.ts'
import type { StoredRuns } from '../../code/stored-runs.ts'
import type { OwnerOf } from './servers/server-routes.ts'

export interface RunRoutesOptions {
  runs: Pick<StoredRuns, 'list' | 'cancel'>
  ownerOf: OwnerOf
}

/**
 * The programs of outside clients. Clients without a browser's cookie have no owner of their own: everyone with access sees their
 * programs and can end them, as in the inbox. Those of a browser are for its owner only.
 */
export function registerRunRoutes(server: FastifyInstance, { runs, ownerOf }: RunRoutesOptions): void {
  const isOwn = (cookies: string | undefined) => {
    const mine = ownerOf(cookies)
    return (owner: string) => owner === mine || owner === LOCAL_OWNER
  }
  // Not counted: a page with an open inbox polls every other second.
  const polled = { config: { isUncounted: true } } as const
  server.get('/api/runs', polled, async ({ headers }): Promise<RunsReply> => {
    return { runs: await runs.list(isOwn(headers.cookie)), now: Date.now() }
  })

  server.post<{ Params: { id: string } }>('/api/runs/:id/cancel', async ({ params, headers }, reply) => {
    await runs.cancel(params.id, isOwn(headers.cookie))
    return reply.code(204).send()
  })
}
