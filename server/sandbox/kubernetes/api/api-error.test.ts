import { ApiException } from '@kubernetes/client-node'
import { describe, expect, it } from 'vitest'
import { ApiRefusal, translateApiError } from './api-error.ts'

const context = { address: 'https://10.0.0.1:6443', namespace: 'sandboxes', to: 'create a pod' }
const translate = (error: unknown) => translateApiError(error, context)

describe('an error before the API server has answered', () => {
  it.each(['error: you must be logged in as alice, token s3cr3t', '403 Forbidden: s3cr3t', '404 s3cr3t not found'])(
    'shows nothing that a credential plugin has printed in the chat: %s',
    (printed) => {
      const error = translate(new Error(printed))
      expect(error).toMatchObject({
        kind: 'unavailable',
        code: 'engine_error',
        where: expect.stringContaining(printed)
      })
      expect(error.message).not.toContain('s3cr3t')
      expect(error.message).toContain('operator')
      expect(error.details.status).toBeUndefined()
    }
  )

  it('is named as a connection that failed if it was one', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:6443'), { code: 'ECONNREFUSED' })
    const error = translate(new TypeError('fetch failed', { cause }))
    expect(error).toMatchObject({ code: 'engine_unavailable', where: 'at https://10.0.0.1:6443' })
    expect(error.message).not.toContain('10.0.0.1')
  })
})

describe('an answer of the API server', () => {
  const answer = (status: number, message: string) => new ApiException(status, 'x', JSON.stringify({ message }), {})

  it.each([
    [403, 'pods "x" is forbidden: exceeded quota: sandboxes', 'cluster_full'],
    [403, 'pods is forbidden: User "x" cannot create resource "pods"', 'engine_forbidden'],
    [401, 'Unauthorized', 'engine_forbidden'],
    [404, 'namespaces "x" not found', 'engine_error'],
    [404, 'pods "x" not found', 'container_gone']
  ])('of %i "%s" is %s', (status, message, code) => {
    expect(translate(answer(status, message))).toMatchObject({ code, details: { status } })
    expect(translate(new ApiRefusal(status, message))).toMatchObject({ code, details: { status } })
  })
})
