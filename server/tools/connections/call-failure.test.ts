import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client'
import { expect, it } from 'vitest'
import { callFailure } from './call-failure.ts'

const fetchFailed = (code: string, message: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) })

/** As the SDK reports a greeting that could not even be sent. */
const greetingFailed = (cause: Error) =>
  new SdkError(SdkErrorCode.EraNegotiationFailed, 'Version negotiation probe failed: fetch failed', undefined, {
    cause
  })

it.each([
  ['a request', fetchFailed('ECONNREFUSED', 'connect ECONNREFUSED')],
  ['the greeting', greetingFailed(fetchFailed('ECONNREFUSED', 'connect ECONNREFUSED'))]
])('says of %s to a remote server that is down that it can not be reached', (_, error) => {
  expect(callFailure('far', 'the greeting', error)).toMatchObject({
    code: 'child_unreachable',
    message: '"far" can\'t be reached (ECONNREFUSED).',
    details: { sent: false }
  })
})

it('says what broke the connection, and does not claim that nothing was sent', () => {
  const error = greetingFailed(fetchFailed('UND_ERR_SOCKET', 'other side closed'))
  expect(callFailure('far', 'the greeting', error)).toMatchObject({
    code: 'child_lost',
    message: 'The connection to "far" broke: other side closed',
    details: { sent: true }
  })
})
