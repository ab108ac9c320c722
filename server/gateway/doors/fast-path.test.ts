import { describe, expect, it } from 'vitest'
import { readFastCall } from './fast-path.ts'

const VERSION = 'io.modelcontextprotocol/protocolVersion'
const INFO = 'io.modelcontextprotocol/clientInfo'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const envelope = { [VERSION]: '2026-07-28', [INFO]: { name: 'test', version: '1' }, [CAPABILITIES]: {} }
const call = (params: object = {}, message: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'execute', arguments: { a: 1 }, ...params },
  ...message
})

describe('the fast path', () => {
  it('reads a call of the older revisions', () => {
    expect(readFastCall(call())).toEqual({ id: 1, name: 'execute', args: { a: 1 }, meta: {}, modern: false })
    const meta = { progressToken: 'p', traceparent: 't' }
    expect(readFastCall(call({ _meta: meta, arguments: undefined }, { id: 'x' }))).toEqual({
      id: 'x',
      name: 'execute',
      args: {},
      meta: { traceparent: 't' },
      progressToken: 'p',
      modern: false
    })
  })

  it('reads a call of the newer revision, without passing its envelope on', () => {
    expect(readFastCall(call({ _meta: { ...envelope, traceparent: 't' } }))).toEqual({
      id: 1,
      name: 'execute',
      args: { a: 1 },
      meta: { traceparent: 't' },
      modern: true,
      client: { name: 'test', version: '1' }
    })
    expect(readFastCall(call({ _meta: { [VERSION]: '2026-07-28', [CAPABILITIES]: {} } }))?.modern).toBe(true)
  })

  it.each<[string, unknown]>([
    ['no object', 'tools/call'],
    ['a batch', [call()]],
    ['another method', call({}, { method: 'tools/list' })],
    ['no version of JSON-RPC', call({}, { jsonrpc: undefined })],
    ['a notification', call({}, { id: undefined })],
    ['an id that is null', call({}, { id: null })],
    ['an id that is no integer', call({}, { id: 1.5 })],
    ['a field that it does not know', call({}, { result: {} })],
    ['no parameters', call({}, { params: undefined })],
    ['a name that is no text', call({ name: 7 })],
    ['arguments that are a list', call({ arguments: [] })],
    ['arguments that are null', call({ arguments: null })],
    ['a task', call({ task: { ttl: 1 } })],
    ['an answer to a question', call({ inputResponses: {}, requestState: 'x' })],
    ['meta that is a list', call({ _meta: [] })],
    ['a progress token that is an object', call({ _meta: { progressToken: {} } })],
    ['a reserved key without an envelope', call({ _meta: { [CAPABILITIES]: {} } })],
    ['another revision', call({ _meta: { ...envelope, [VERSION]: '2027-01-01' } })],
    ['a revision that is no text', call({ _meta: { ...envelope, [VERSION]: 1 } })],
    ['no capabilities', call({ _meta: { ...envelope, [CAPABILITIES]: undefined } })],
    ['a client that can be asked', call({ _meta: { ...envelope, [CAPABILITIES]: { elicitation: {} } } })],
    ['a client without a version', call({ _meta: { ...envelope, [INFO]: { name: 'x' } } })],
    ['a client with more to say', call({ _meta: { ...envelope, [INFO]: { name: 'x', version: '1', icons: 1 } } })],
    ['a log level', call({ _meta: { ...envelope, 'io.modelcontextprotocol/logLevel': 'debug' } })]
  ])('leaves %s to the SDK', (_what, message) => {
    expect(readFastCall(message)).toBeUndefined()
  })
})
