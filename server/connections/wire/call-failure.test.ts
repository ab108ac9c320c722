import { ProtocolError, SdkError, SdkErrorCode } from '@modelcontextprotocol/client'
import { expect, it } from 'vitest'
import { callFailure, withoutSecrets } from './call-failure.ts'
import { readTools } from './read-tools.ts'

const fetchFailed = (code: string, message: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) })

/** As the SDK reports a greeting that could not even be sent. */
const initializationFailed = (cause: Error) =>
  new SdkError(SdkErrorCode.EraNegotiationFailed, 'Version negotiation probe failed: fetch failed', undefined, {
    cause
  })

it.each([
  ['a request', fetchFailed('ECONNREFUSED', 'connect ECONNREFUSED')],
  ['the initialization', initializationFailed(fetchFailed('ECONNREFUSED', 'connect ECONNREFUSED'))]
])('reports that a remote server that is down can not be reached: %s', (_, error) => {
  expect(callFailure('far', 'the initialization', error)).toMatchObject({
    code: 'child_unreachable',
    message: '"far" can\'t be reached (ECONNREFUSED).',
    details: { sent: false }
  })
})

it('says what broke the connection, and does not claim that nothing was sent', () => {
  const error = initializationFailed(fetchFailed('UND_ERR_SOCKET', 'other side closed'))
  expect(callFailure('far', 'the initialization', error)).toMatchObject({
    code: 'child_lost',
    message: 'The connection to "far" broke: other side closed',
    details: { sent: true }
  })
})

it('quotes a server in one line, without control or hidden characters, and without a secret of several lines', () => {
  const said = new ProtocolError(-32000, 'bad \x1b[31mred\x1b[0m \u202egpj\nKEY\nof two lines')
  const redact = (text: string) => text.replaceAll('KEY\nof two lines', '[secret]')
  expect(withoutSecrets(callFailure('evil', 'run', said), redact).message).toBe(
    '"evil" refused run: bad red ⟨U+202E⟩gpj / [secret]'
  )
})

it('leaves out tools whose name has control or hidden characters', () => {
  const names = ['plain', 'a.b/c-d_e', 'two words', 'red\x1b[31m', 'mirrored\u202egpj', 'line\nbreak']
  const tools = readTools(names.map((name) => ({ name, inputSchema: { type: 'object' } })))
  expect(tools.map(({ name }) => name)).toEqual(['plain', 'a.b/c-d_e', 'two words'])
})
