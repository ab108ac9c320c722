import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { changeRuleSchema, editServerSchema } from '../../../../contract/servers/entry-edits.ts'
import { AppError } from '../../../lib/errors.ts'
import type { ServerDirectory } from '../../../tools/server-directory.ts'

type Named = { Params: { name: string } }
type Check = (request: FastifyRequest) => Promise<void>

/** An entry says what is run, so reading it whole and changing it need an administrator. */
export function registerEditRoutes(
  server: FastifyInstance,
  servers: Pick<ServerDirectory, 'draft' | 'edit' | 'changeRule'>,
  { checkAdmin, refuseOther }: { checkAdmin: Check; refuseOther: Check }
): void {
  const change = { onRequest: checkAdmin, preHandler: refuseOther }
  server.get<Named>('/api/servers/:name/entry', { onRequest: checkAdmin }, ({ params }) => servers.draft(params.name))
  server.put<Named>('/api/servers/:name', change, ({ params, body }) =>
    servers.edit(params.name, bodyOf(editServerSchema, body))
  )
  server.put<Named>('/api/servers/:name/rules', change, async ({ params, body }, reply) => {
    await servers.changeRule(params.name, bodyOf(changeRuleSchema, body))
    return reply.code(204).send()
  })
}

/** Throws an error that names the first invalid member. */
export function bodyOf<T>(schema: z.ZodType<T>, body: unknown): T {
  const read = schema.safeParse(body)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const where = issue?.path.length ? `"${issue.path.join('.')}": ` : ''
  const message = `The request is not valid: ${where}${issue?.message ?? 'not an object'}.`
  throw new AppError('invalid', 'invalid_request', message)
}
