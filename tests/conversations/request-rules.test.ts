import { expect, it } from 'vitest'
import { brokenRules, type Issued, type VendorName } from './request-rules.ts'

const issued: Issued = {
  signatures: new Map([
    ['a-sig', { vendor: 'anthropic', text: 'hm' }],
    ['g-sig', { vendor: 'gemini', text: 'hm' }],
    ['o-sig', { vendor: 'openai responses', text: 'hm' }]
  ]),
  calls: new Map([
    [1, { vendor: 'anthropic', signature: 'a-sig', isFirst: true, era: 0 }],
    [2, { vendor: 'gemini', signature: 'g-sig', isFirst: true, era: 0 }],
    [3, { vendor: 'openai responses', signature: 'o-sig', isFirst: true, era: 0 }]
  ]),
  era: () => 0
}
const user = { role: 'user', content: 'hi' }
const model = { role: 'assistant', content: 'yes' }
const use = (id = 'c1', input = {}) => ({ type: 'tool_use', id, name: 'read', input })
const used = (id = 'c1') => ({ type: 'tool_result', tool_use_id: id, content: 'ok' })
const asks = (...content: object[]) => ({ role: 'assistant', content })
const tells = (...content: object[]) => ({ role: 'user', content })
const g = (role: string, ...parts: object[]) => ({ role, parts })
const gCall = (args = {}) => ({ functionCall: { name: 'read', args } })
const gAnswer = { functionResponse: { name: 'read', response: {} } }
const fCall = (call_id = 'c1', args = '{}') => ({ type: 'function_call', call_id, name: 'read', arguments: args })
const fOut = { type: 'function_call_output', call_id: 'c1', output: 'ok' }
const tCall = { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'read', arguments: '{}' } }] }
const tOut = { role: 'tool', tool_call_id: 'c1', content: 'ok' }

const VALID: [VendorName, object][] = [
  ['anthropic', { messages: [user, model, user, asks(use()), tells(used())] }],
  [
    'anthropic',
    {
      messages: [
        user,
        asks({ type: 'thinking', thinking: 'hm', signature: 'a-sig' }, use('c1', { n: 1 })),
        tells(used())
      ]
    }
  ],
  [
    'gemini',
    {
      contents: [
        g('user', { text: 'hi' }),
        g('model', { ...gCall({ n: 2 }), thoughtSignature: 'g-sig' }),
        g('user', gAnswer)
      ]
    }
  ],
  [
    'openai responses',
    { input: [user, { type: 'reasoning', encrypted_content: 'o-sig' }, fCall('c1', '{"n":3}'), fOut] }
  ],
  ['openai-compatible chat', { messages: [user, tCall, tOut, model, user] }]
]

it.each(VALID)('takes a valid request: %s', (vendor, body) => {
  expect(brokenRules(vendor, body, issued)).toEqual([])
})

const BROKEN: [string, VendorName, object][] = [
  ['lone surrogate', 'gemini', { contents: [g('user', { text: '\ud83e' })] }],
  ['two messages of the user', 'anthropic', { messages: [user, user] }],
  ['last message', 'anthropic', { messages: [user, model] }],
  ['empty text', 'anthropic', { messages: [user, asks({ type: 'text', text: ' ' }), user] }],
  ['results that do not match', 'anthropic', { messages: [user, asks(use()), user] }],
  ['results that do not match', 'anthropic', { messages: [user, model, tells(used())] }],
  ['results after other', 'anthropic', { messages: [user, asks(use()), tells({ type: 'text', text: 'a' }, used())] }],
  ['used twice', 'anthropic', { messages: [user, asks(use()), tells(used()), asks(use()), tells(used())] }],
  ['without the signature', 'anthropic', { messages: [user, asks(use('c1', { n: 1 })), tells(used())] }],
  [
    'was changed',
    'anthropic',
    { messages: [user, asks({ type: 'thinking', thinking: 'ha', signature: 'a-sig' }, use()), tells(used())] }
  ],
  [
    'another vendor',
    'anthropic',
    { messages: [user, asks({ type: 'thinking', thinking: 'hm', signature: 'g-sig' }, use()), tells(used())] }
  ],
  [
    'two contents of the model',
    'gemini',
    {
      contents: [
        g('user', { text: 'a' }),
        g('model', { text: 'a' }),
        g('model', { text: 'b' }),
        g('user', { text: 'a' })
      ]
    }
  ],
  ['empty content', 'gemini', { contents: [g('user')] }],
  [
    'responses that do not match',
    'gemini',
    { contents: [g('user', { text: 'a' }), g('model', gCall()), g('user', { text: 'a' })] }
  ],
  [
    'without the signature',
    'gemini',
    { contents: [g('user', { text: 'a' }), g('model', gCall({ n: 2 })), g('user', gAnswer)] }
  ],
  [
    'nobody has issued',
    'gemini',
    { contents: [g('user', { text: 'a' }), g('model', { ...gCall(), thoughtSignature: 'x' }), g('user', gAnswer)] }
  ],
  ['output without its call', 'openai responses', { input: [user, fOut] }],
  ['calls without outputs', 'openai responses', { input: [user, fCall()] }],
  ['not JSON', 'openai responses', { input: [user, fCall('c1', '{'), fOut] }],
  ['without the signature', 'openai responses', { input: [user, fCall('c1', '{"n":3}'), fOut] }],
  ['nothing follows', 'openai responses', { input: [user, { type: 'reasoning', encrypted_content: 'o-sig' }, user] }],
  ['empty content', 'openai responses', { input: [{ role: 'user', content: '' }] }],
  ['two messages of the user', 'openai-compatible chat', { messages: [user, user] }],
  ['two messages of the assistant', 'openai-compatible chat', { messages: [user, model, model, user] }],
  ['result without its call', 'openai-compatible chat', { messages: [user, tOut] }],
  ['calls without results', 'openai-compatible chat', { messages: [user, tCall, user] }],
  ['empty content', 'openai-compatible chat', { messages: [user, { role: 'assistant', content: '' }, user] }]
]

it.each(BROKEN)('finds: %s (%s)', (rule, vendor, body) => {
  expect(brokenRules(vendor, body, issued)).toContainEqual(expect.stringContaining(rule))
})
