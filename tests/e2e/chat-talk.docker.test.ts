import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Snapshot } from '../../contract/live.ts'
import { child } from '../../server/connections/connections.fixture.ts'
import type { Client } from '../support/client.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

async function served(): Promise<Served> {
  const dataDir = temporaryFolder()
  const file = join(dataDir, 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { shop: child('asking', [], { approval: { '*': 'allow' } }) } }))
  return serve({ MCP_CONFIG: file }, { dataDir })
}

async function ask(client: Client, tool: string) {
  const from = client.seen.length
  await client.ask('message', `use shop__${tool} {}`)
  return client.wait('tool:question', undefined, { from })
}
const answerIn = async (client: Client, callId: unknown) =>
  JSON.parse(textOf(await client.wait('tool:result', (data) => data.callId === callId)))

describe('what an MCP server says and asks during a call of the chat', () => {
  afterAll(stopServers)

  it('shows its progress and log, and asks the person, whose answer only the server gets', async () => {
    const server = await served()
    const client = server.connect('talk')
    await client.ready()
    const question = await ask(client, 'order')
    const { callId, id } = question
    expect(question).toMatchObject({ message: expect.stringContaining('What shall it be?') })
    expect(question.fields).toMatchObject([
      { name: 'name', kind: 'text', title: 'Your name', isRequired: true, minLength: 2 },
      {
        name: 'size',
        kind: 'choice',
        options: [
          { value: 's', title: 'Small' },
          { value: 'l', title: 'Large' }
        ]
      },
      { name: 'count', kind: 'number', isInteger: true, default: 2, isRequired: false },
      { name: 'fresh', kind: 'boolean', title: 'Only fresh ones' }
    ])
    const report = { callId, progress: 1, total: 4, message: 'Looking at the menu' }
    expect(await client.wait('tool:progress')).toMatchObject(report)
    expect(await client.wait('tool:log')).toEqual({
      callId,
      lines: [{ level: 'info', text: 'kitchen: The stove is on.' }]
    })

    // A second tab gets all of it, and its answer counts.
    const { token } = await client.ready()
    const late = server.connect('talk', { token })
    const { transcript } = (await late.snapshot()) as Snapshot
    expect(transcript.calls[String(callId)]?.questions).toMatchObject([{ id, message: question.message }])
    expect(await late.wait('tool:progress')).toMatchObject(report)
    expect(await late.wait('tool:log')).toMatchObject({ isWhole: true })
    const bad = await late.ask('tool:answer', { callId, id, action: 'accept', values: { name: 'A', size: 's' } })
    expect(bad).toMatchObject({ ok: false, error: { code: 'invalid_answer' } })
    const values = { name: 'Ada', size: 'l', count: 3 }
    expect(await late.ask('tool:answer', { callId, id, action: 'accept', values })).toEqual({ ok: true })
    expect(await client.ask('tool:answer', { callId, id, action: 'decline' })).toMatchObject({ ok: false })
    expect(await answerIn(client, callId)).toEqual({ result: { action: 'accept', content: values } })
    const told = await client.wait('tool:question_answered')
    expect(told).toMatchObject({ callId, id, action: 'accept', by: 'human' })
    expect(told).not.toHaveProperty('values')
    const result = await client.wait('tool:result')
    expect(result.log).toEqual([{ level: 'info', text: 'kitchen: The stove is on.' }])
    await client.wait('turn:end')

    const { callId: visit, ...page } = await ask(client, 'visit')
    expect(page).toMatchObject({ url: 'https://login.example:8443/go?x=1', message: 'Log in there.' })
    await client.ask('tool:answer', { callId: visit, id: page.id, action: 'decline' })
    expect(await answerIn(client, visit)).toEqual({ result: { action: 'decline' } })
    await client.wait('turn:end', ({ turnId }) => turnId === 't2')

    const from = client.seen.length
    await client.ask('message', 'use shop__odd {}')
    const { callId: odd } = await client.wait('tool:started', undefined, { from })
    expect(await answerIn(client, odd)).toMatchObject({ error: { message: expect.stringContaining('"a"') } })
    await server.stop()
  })

  it('ends with the turn or with the server, and then says that the outcome is unknown', async () => {
    const server = await served()
    const client = server.connect('talk-ends')
    const { token } = await client.ready()
    const stopped = await ask(client, 'order')
    await client.ask('turn:cancel')
    await client.wait('tool:result', ({ callId }) => callId === stopped.callId)
    const late = await client.ask('tool:answer', { callId: stopped.callId, id: stopped.id, action: 'cancel' })
    expect(late).toMatchObject({ ok: false, error: { code: 'question_over' } })

    const lost = await ask(client, 'order')
    await server.kill9()
    const again = await serve({ MCP_CONFIG: join(server.dataDir, 'mcp.json') }, { dataDir: server.dataDir })
    const back = again.connect('talk-ends', { token })
    const result = await back.wait('tool:result', ({ callId }) => callId === lost.callId)
    expect(result).toMatchObject({ outcome: 'unknown', interruptedBy: 'server' })
    const over = await back.ask('tool:answer', { callId: lost.callId, id: lost.id, action: 'cancel' })
    expect(over).toMatchObject({ ok: false, error: { code: 'question_over' } })
    await again.stop()
  })
})
