import { describe, expect, it } from 'vitest'
import type { ApprovalMode } from '../../contract/effects/modes.ts'
import { WORKSPACE } from '../../contract/own-sources.ts'
import { approvalHash, offerTools } from '../calls/offered-tool.ts'
import { AppError } from '../lib/errors.ts'
import type { AssistantPart, ChatMessage, StepEvent, StepRequest } from '../models/port.ts'
import { createPolicy } from '../policy/approval-policy.ts'
import { type AgentEvent, type ModelStepInput, modelStep, type StepOutput } from './model-step.ts'
import { partsOf } from './stored-parts.ts'

const tools = offerTools(
  'files',
  [
    { name: 'read', inputSchema: {} },
    { name: 'write', inputSchema: {} }
  ],
  new Set()
)
const usage = { inputTokens: 3, outputTokens: 2 }
const call = (name: string, args = '{}', callId = name): AssistantPart => ({ type: 'tool-call', callId, name, args })
const done = (...parts: AssistantPart[]): StepEvent => ({ type: 'done', parts, finish: 'stop', usage })

async function run(step: (request: StepRequest) => StepEvent[], more: Partial<ModelStepInput> = {}) {
  const outputs: StepOutput[] = []
  const input: ModelStepInput = {
    sessionId: 's',
    turnId: 't1',
    model: 'demo/demo',
    system: '',
    history: [{ role: 'user', text: 'hi' }],
    maxHistoryTokens: 1000,
    tools,
    known: tools,
    trimmingTold: false,
    takenIds: () => false,
    allowed: {},
    policy: createPolicy([]),
    mode: 'ask',
    changed: new Map(),
    async *step(request) {
      yield* step(request)
    },
    signal: new AbortController().signal,
    ...more
  }
  for await (const output of modelStep(input)) outputs.push(output)
  const last = outputs.at(-1)
  return { outputs, events: last?.type === 'events' ? last.events : [] }
}

const ofType = <T extends AgentEvent['type']>(events: AgentEvent[], type: T) =>
  events.filter((event): event is Extract<AgentEvent, { type: T }> => event.type === type)

describe('a step', () => {
  it('without calls ends the turn, with the reason', async () => {
    const { events } = await run(() => [done({ type: 'text', text: 'hello' })])
    expect(events.map(({ type }) => type)).toEqual(['agent:response', 'usage', 'turn:end'])
    const refused = await run(() => [{ type: 'done', parts: [], finish: 'refusal', usage }])
    expect(ofType(refused.events, 'turn:end')[0]?.data.reason).toBe('refused')
  })

  it('stores its text once, and the model gets back exactly its parts', async () => {
    const meta = { vendor: { signature: 's' } }
    const text = 'x'.repeat(600_000)
    const given: AssistantPart[] = [
      { type: 'text', text: 'One ', meta },
      { type: 'reasoning', text: 'hm', meta },
      { type: 'text', text },
      call('files__read', '{"path":"a"}', 'c1'),
      { type: 'text', text: '' }
    ]
    const { events } = await run(() => [done(...given)])
    const [response] = ofType(events, 'agent:response')
    expect(JSON.stringify(response).length).toBeLessThan(text.length + 1000)
    expect(response && partsOf(response.data)).toEqual(given)
  })

  it('announces its calls together, bound to session, call, definition and arguments', async () => {
    const { events } = await run(() => [
      done(call('files__read', '{"path":"a"}', 'c1'), call('files__write', '', 'c2'))
    ])
    const cards = ofType(events, 'tool:approval_required').map(({ data }) => data)
    expect(cards.map(({ queuePosition, totalInQueue }) => [queuePosition, totalInQueue])).toEqual([
      [1, 2],
      [2, 2]
    ])
    const definition = tools[0]?.definition ?? ''
    expect(cards[0]?.hash).toBe(approvalHash({ sessionId: 's', callId: 'c1', definition, args: { path: 'a' } }))
    expect(cards[1]?.args).toEqual({})
    expect(cards[0]?.claims).toMatchObject({ description: expect.any(String) })
    expect(ofType(events, 'tool:approval_resolved')).toEqual([])
    expect(ofType(events, 'turn:end')).toEqual([])
  })

  // Checked: with `JSON.parse`, a card appears for 65 levels.
  it.each(['{"a":', '[]', '"x"', 'null', '7', `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`])(
    'does not ask for a call whose arguments are %s',
    async (args) => {
      const { events } = await run(() => [done(call('files__read', args))])
      expect(ofType(events, 'tool:approval_required')).toEqual([])
      const [response] = ofType(events, 'agent:response')
      expect(response?.data.parts).toMatchObject([{ invalid: expect.stringContaining('JSON object') }])
    }
  )

  it('requests no tool that is not offered', async () => {
    const { events } = await run(() => [done(call('read'), call('files__read', '{}', 'ok'))])
    expect(ofType(events, 'tool:approval_required').map(({ data }) => [data.name, data.totalInQueue])).toEqual([
      ['read', 1]
    ])
    expect(ofType(events, 'session:notice')).toMatchObject([
      { data: { code: 'invalid_call', message: expect.stringMatching(/"read".*There is no tool named/) } }
    ])
    expect(ofType(events, 'agent:response')[0]?.data.parts).toMatchObject([
      { invalid: 'There is no tool named "read".' },
      { callId: 'ok' }
    ])
  })

  it('is decided at once by an "always allow" of the very same definition only', async () => {
    const definition = tools[0]?.definition ?? ''
    const by = async (allowed: Record<string, string>, more: Partial<ModelStepInput> = {}) => {
      const { events } = await run(() => [done(call('files__read'))], { allowed, ...more })
      return ofType(events, 'tool:approval_resolved').map(({ data }) => data.by)
    }
    expect(await by({ 'files/read': definition })).toEqual(['session'])
    expect(await by({ 'files/read': 'another' })).toEqual([])
    expect(await by({ 'files/write': definition })).toEqual([])
    const changed = new Map([['files__read', { before: 'a', after: 'b' }]])
    expect(await by({ 'files/read': definition }, { changed })).toEqual([])
    const policy = createPolicy([{ glob: '*', rule: 'deny' }])
    expect(await by({ 'files/read': definition }, { policy, changed })).toEqual(['policy'])
  })

  it('runs ahead in a fork only what the sandbox does, and nothing that a rule denies', async () => {
    const sandbox = offerTools(WORKSPACE, [{ name: 'write_file', inputSchema: {} }], new Set())
    const annotated = tools.map((tool) => ({ ...tool, annotations: { readOnlyHint: true } }))
    const [name = ''] = sandbox.map(({ modelName }) => modelName)
    const steps = async (mode: ApprovalMode, rule?: 'allow' | 'deny') => {
      const policy = createPolicy(rule ? [{ glob: '*', rule }] : [])
      const calls = [call(name, '{}', 'inside'), call('files__write', '{}', 'outside')]
      const { events } = await run(() => [done(...calls)], { tools: [...sandbox, ...annotated], mode, policy })
      const decisions = new Map(ofType(events, 'tool:approval_resolved').map(({ data }) => [data.callId, data.by]))
      return ofType(events, 'tool:approval_required').map(({ data }) => [data.ahead, decisions.get(data.callId)])
    }
    const waits = [undefined, undefined]
    const byRule = [undefined, 'policy']
    expect(await steps('ask')).toEqual([waits, waits])
    expect(await steps('preview')).toEqual([['preview', undefined], waits])
    expect(await steps('review')).toEqual([['review', 'review'], waits])
    for (const mode of ['preview', 'review'] as const) expect(await steps(mode, 'deny')).toEqual([byRule, byRule])
    expect(await steps('preview', 'allow')).toEqual([byRule, byRule])
    expect(await steps('review', 'allow')).toEqual([['review', 'policy'], byRule])
  })

  it('with an empty stream is an error', async () => {
    await expect(run(() => [{ type: 'text-delta', text: 'ha' }])).rejects.toMatchObject({ code: 'model_stream_cut' })
  })

  it('trims more as long as the provider reports that it is too long, then gives up', async () => {
    const history: ChatMessage[] = Array.from({ length: 20 }, (_, at) => ({ role: 'user', text: `${at} `.repeat(50) }))
    const sizes: number[] = []
    const full = () => new AppError('invalid', 'model_context_full', 'full')
    const { outputs, events } = await run(
      ({ messages }) => {
        sizes.push(messages.length)
        if (messages.length > 6) throw full()
        return [done({ type: 'text', text: 'ok' })]
      },
      // The limit is far higher than the history; only the provider's error counts.
      { history, maxHistoryTokens: 1_000_000 }
    )
    expect(sizes).toEqual([20, expect.any(Number), expect.any(Number)])
    expect(outputs.filter(({ type }) => type === 'waiting')).toHaveLength(2)
    expect(ofType(events, 'session:notice')[0]?.data.code).toBe('history_trimmed')
    const never = run(
      () => {
        throw full()
      },
      { history }
    )
    await expect(never).rejects.toMatchObject({ code: 'model_context_full' })
  })
})
