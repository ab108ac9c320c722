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
  const chat = { door: 'chat', server: 'workspace', tool: 'execute_command' } as const
  const all = [
    entry('1', 'local'),
    { ...entry('2', 'hash-of-ann'), ...chat, session: 'of-ann' },
    entry('3', 'hash-of-ben'),
    { ...entry('4', 'local'), ...chat, session: 'of-ben' }
  ]
  registerAuditRoutes(
    server,
    {
      read: async ({ limit }, allowed) => ({ entries: all.filter(allowed).slice(0, limit), next: null }),
      about: async ({ session }) => `make ${session}`,
      ownerOf: (cookies) => (cookies === undefined ? 'local' : `hash-of-${cookies.split('=')[1]}`),
      problem: 'the disk is full'
    },
    {
      check: async (sessionId, { owner }) => {
        if (sessionId !== `of-${owner}`) throw new Error('forbidden')
      }
    }
  )
  const { statusCode, body } = await server.inject({
    url: `/api/audit${query}`,
    headers: cookie ? { cookie: `mcpo_owner=${cookie}` } : {}
  })
  await server.close()
  return { status: statusCode, reply: JSON.parse(body) }
}

it('shows the rows for everyone and those of the owner who asks', async () => {
  const { reply } = await ask('', 'ann')
  expect(auditReply.parse(reply)).toMatchObject({
    entries: [{ id: '1' }, { id: '2' }, { id: '4' }],
    problem: 'the disk is full'
  })
  expect((await ask('')).reply.entries).toMatchObject([{ id: '1' }, { id: '4' }])
})

it('refuses what it does not understand', async () => {
  expect((await ask('?limit=1')).reply.entries).toHaveLength(1)
  for (const query of ['?limit=0', '?limit=9999', '?limit=x', '?outcome=fine'])
    expect((await ask(query)).status).toBe(400)
})

// Checked: if the owner in the row is enough, everyone with access sees the command of a session that has only a token.
it('says what a call was about only to those who may open its session, and finds that text for them only', async () => {
  const { reply } = await ask('', 'ann')
  expect(reply.entries.map(({ id, mayOpen, about }) => [id, mayOpen, about])).toEqual([
    ['1', undefined, undefined],
    ['2', true, 'make of-ann'],
    ['4', undefined, undefined]
  ])
  const found = async (text: string) => (await ask(`?text=${text}`, 'ann')).reply.entries.map(({ id }) => id)
  expect(await found('MAKE')).toEqual(['2'])
  expect(await found('execute_c')).toEqual(['2', '4'])
  expect((await ask('?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00%2B01:00', 'ann')).status).toBe(200)
  expect((await ask('?from=yesterday', 'ann')).status).toBe(400)
})
