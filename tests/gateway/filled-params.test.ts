import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { startOpenAiServer } from '../fixtures/model-servers/openai-server.ts'
import { type GatewayProcess, type GatewayProcessOptions, startGateway } from '../support/gateway-process.ts'
import { textOf } from '../support/text-of.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const ERAS = ['legacy', 'auto'] as const
const APPROVE = 'Approve'
const data = (result: Record<string, unknown>) => result.structuredContent as Record<string, unknown>
const route = ({ _meta }: Record<string, unknown>) =>
  (_meta as Record<string, unknown> | undefined)?.['mcp-orchestrator/route']

interface Means extends GatewayProcessOptions {
  /** The replies of the client's model; undefined if it has none. */
  samples?: string[]
  /** The answers of its user; undefined if there is none. */
  answers?: string[]
}

async function start({ samples, answers, ...options }: Means) {
  const seen = { prompts: [] as string[], questions: [] as string[] }
  const gateway: GatewayProcess = await startGateway(
    ({ dir }) => {
      writeFileSync(join(dir, 'definition'), 'Writes a note.')
      return { notes: child('changing', [join(dir, 'definition'), join(dir, 'notes')]), steady: child('steady', ['x']) }
    },
    {
      ...options,
      capabilities: { ...(samples ? { sampling: {} } : {}), ...(answers ? { elicitation: { form: {} } } : {}) },
      onClient(client) {
        if (samples)
          client.setRequestHandler('sampling/createMessage', ({ params }) => {
            seen.prompts.push(JSON.stringify(params))
            const text = samples.shift() ?? 'no idea'
            return { role: 'assistant', model: 'theirs', content: { type: 'text', text } }
          })
        if (answers)
          client.setRequestHandler('elicitation/create', ({ params }) => {
            seen.questions.push(params.message)
            return { action: 'accept', content: { answer: answers.shift() ?? 'Reject' } }
          })
      }
    }
  )
  closers.push(() => gateway.end())
  const notes = () => {
    const file = join(gateway.dir, 'notes')
    return existsSync(file)
      ? readFileSync(file, 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line))
      : []
  }
  const note = (request: string, params: Record<string, unknown> = {}) =>
    gateway.call('execute', { server: 'notes', tool: 'note', request, params })
  return { gateway, note, notes, ...seen }
}

describe('parameters that the rules do not find', { timeout: 60_000 }, () => {
  it.each(ERAS)('are read out of the sentence by the client’s model; what the caller gave stays (%s)', async (era) => {
    const fence = '```json\n{"title": "Buy milk", "pinned": true, "colour": "red", "__proto__": {"x": 1}}\n```'
    const { note, notes, prompts } = await start({
      era,
      samples: [fence, '{"title": "buy"}', '{"title": 5}', 'I would rather not.', '{"title": "Buy milk"}']
    })
    const done = await note('note down Buy milk for me', { pinned: false })
    expect(textOf(done)).toBe('noted')
    expect(route(done)).toMatchObject({ params: { title: 'Buy milk', pinned: false }, filledBy: { title: 'sampling' } })
    expect(prompts[0]).toContain('note down Buy milk for me')
    // Not a word of the sentence, of the wrong type, no JSON: the caller is asked, and nothing is written.
    for (const request of ['jot down that I must buyback it', 'jot down five', 'jot down anything'])
      expect(data(await note(request))).toMatchObject({ status: 'needs_params', problems: ['title is missing'] })
    expect(data(await note('jot down Buy milk', { title: 7 }))).toMatchObject({ problems: ['title must be string'] })
    // A model may read a value out of a sentence that forbids the call.
    expect(data(await note('never note down Buy milk'))).toMatchObject({ status: 'needs_params', params: {} })
    expect(prompts).toHaveLength(5)
    expect(notes()).toEqual([{ title: 'Buy milk', pinned: false }])
  })

  it.each(ERAS)('are shown to a person if a write would get a value that nobody said (%s)', async (era) => {
    const samples = ['{"title": "Dairy", "pinned": true}', '{"title": "Dairy"}']
    const { note, notes, questions } = await start({ era, samples, answers: [APPROVE, 'Reject'] })
    const done = await note('jot down that we lack milk')
    expect(route(done)).toMatchObject({ approvedBy: 'client', filledBy: { title: 'sampling', pinned: 'sampling' } })
    expect(questions[0]).toMatch(/"title": "Dairy".*Filled in/s)
    expect(textOf(await note('jot down that we lack cheese'))).toMatch(/was rejected/)
    expect(notes()).toEqual([{ title: 'Dairy', pinned: true }])
  })

  it('are read by a configured model where the client has none, and by none where none is configured', async () => {
    const model = await startOpenAiServer({
      models: [{ id: 'vendor/llama-test', object: 'model' }],
      replies: [{ text: '{"title": "Call Ann"}' }, { text: '{"message": "made up"}' }, { status: 400, body: {} }]
    })
    closers.push(() => model.close())
    const env = { OPENAI_COMPATIBLE_BASE_URL: `${model.url}/v1`, LLM_PROVIDER: 'openai-compatible' }
    const { note, notes, gateway } = await start({ env })
    const done = await note('note: Call Ann')
    expect(route(done)).toMatchObject({ params: { title: 'Call Ann' }, filledBy: { title: 'model' } })
    // A tool that only reads may also get values that are not literally in the request.
    const echo = await gateway.call('execute', { server: 'steady', tool: 'echo', request: 'say something' })
    expect([textOf(echo), route(echo)]).toEqual([
      'made up',
      expect.objectContaining({ filledBy: { message: 'model' } })
    ])
    expect(data(await note('remind me of something'))).toMatchObject({ status: 'needs_params' })
    expect(notes()).toEqual([{ title: 'Call Ann' }])

    const without = await start({})
    expect(data(await without.note('note: Call Ann'))).toMatchObject({
      status: 'needs_confirmation',
      params: { title: 'Call Ann' },
      reason: expect.stringContaining('Check "title": the request has the value, but not the name')
    })
    expect(without.notes()).toEqual([])
  })
})
