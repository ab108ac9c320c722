import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { type AuditEntry, type AuditReply, auditReply } from '../../../contract/audit.ts'
import { isAppError } from '../../lib/errors.ts'
import { registerAuditRoutes } from './audit-routes.ts'

const entry = (id: string, owner: string): AuditEntry => {
  return { id, at: '2026-01-01T00:00:00.000Z', kind: 'call', owner, door: 'http', outcome: 'ok' }
}

async function ask(query: string, cookie?: string): Promise<{ status: number; reply: AuditReply }> {
  const server = Fastify()
  server.setErrorHandler((error, _request, reply) => reply.code(isAppError(error) ? 400 : 500).send({}))
  const all = [entry('1', 'local'), entry('2', 'hash-of-ann'), entry('3', 'hash-of-ben')]
  registerAuditRoutes(server, {
    read: ({ limit }, allowed) => ({ entries: all.filter(allowed).slice(0, limit), next: null }),
    ownerOf: (cookies) => (cookies === undefined ? 'local' : `hash-of-${cookies}`),
    problem: 'the disk is full'
  })
  const { statusCode, body } = await server.inject({ url: `/api/audit${query}`, headers: cookie ? { cookie } : {} })
  await server.close()
  return { status: statusCode, reply: JSON.parse(body) }
}

it('shows the rows that are everybody’s and those of the one who asks', async () => {
  const { reply } = await ask('', 'ann')
  expect(auditReply.parse(reply)).toMatchObject({ entries: [{ id: '1' }, { id: '2' }], problem: 'the disk is full' })
  expect((await ask('')).reply.entries).toMatchObject([{ id: '1' }])
})

it('refuses what it does not understand', async () => {
  expect((await ask('?limit=1')).reply.entries).toHaveLength(1)
  for (const query of ['?limit=0', '?limit=9999', '?limit=x', '?outcome=fine'])
    expect((await ask(query)).status).toBe(400)
})
