import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { registerSecurity } from '../security.ts'
import { registerApprovalRoutes } from './approval-routes.ts'

it('can be looked at by as many pages as one address has', async () => {
  const server = Fastify()
  await registerSecurity(server, {
    instance: { check: () => {}, checkLogin: () => {}, cookieFor: () => undefined, needsToken: false },
    addressOf: () => 'one office',
    requestsPerMinute: 600,
    owners: {
      ownerOf: async () => undefined,
      enter: async () => ({ cookie: 'fresh', isKnown: false }),
      isKnown: async () => true
    }
  })
  registerApprovalRoutes(server, { open: async () => [], answer: async () => {} })
  server.get('/', async () => 'the page')
  // Thirty pages, each of which asks every two seconds, for a minute.
  const polls = await Promise.all(Array.from({ length: 900 }, () => server.inject('/api/approvals')))
  expect(new Set(polls.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
  expect((await server.inject('/')).body).toBe('the page')
  const answers = await Promise.all(
    Array.from({ length: 700 }, () =>
      server.inject({ method: 'POST', url: '/api/approvals/x', payload: { approved: true, hash: 'h' } })
    )
  )
  expect(answers.filter(({ body }) => body.includes('Too many requests'))).toHaveLength(100)
  await server.close()
})

it('takes no edited arguments, which it would not run', async () => {
  const server = Fastify()
  const answers: unknown[] = []
  registerApprovalRoutes(server, { open: async () => [], answer: async (...answer) => void answers.push(answer) })
  const payload = { approved: true, hash: 'h', args: { q: 'other' } }
  expect((await server.inject({ method: 'POST', url: '/api/approvals/x', payload })).statusCode).not.toBe(204)
  expect(answers).toEqual([])
  await server.close()
})
