import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { type GatewayProcess, type GatewayProcessOptions, startGateway } from '../support/gateway-process.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

const ERAS = ['legacy', 'auto'] as const
const asking = { approval: { '*': 'ask', echo: 'allow' } }
const code = ({ _meta }: Record<string, unknown>) =>
  (_meta as Record<string, { code?: string }> | undefined)?.['mcp-orchestrator/error']?.code
const route = ({ _meta }: Record<string, unknown>) =>
  (_meta as Record<string, Record<string, unknown>> | undefined)?.['mcp-orchestrator/route']

interface Asked {
  message: string
}

/** A client whose user gives the answers of the list in order, and then dismisses every question. */
async function start(
  answers: (string | null)[] | undefined,
  options: GatewayProcessOptions = {},
  more: Record<string, unknown> = asking
) {
  const asked: Asked[] = []
  const onClient = (client: Client) => {
    if (!answers) return
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push({ message: params.message })
      const answer = answers.shift() ?? null
      return answer === null ? { action: 'decline' } : { action: 'accept', content: { answer } }
    })
  }
  const capabilities = answers ? { elicitation: { form: {} } } : {}
  const gateway = await startGateway(({ dir }) => ({ steady: child('steady', [join(dir, 'count')], more) }), {
    ...options,
    capabilities,
    onClient
  })
  running.push(gateway)
  const written = () => {
    try {
      return readFileSync(join(gateway.dir, 'count'), 'utf8').trim().split('\n')
    } catch {
      return []
    }
  }
  const write = (message: string) => gateway.call('execute', { server: 'steady', tool: 'write', params: { message } })
  return { gateway, asked, written, write }
}

describe('a call that needs approval, over stdio', { timeout: 60_000 }, () => {
  it.each(ERAS)('is asked for in the client, with the exact arguments (%s)', async (era) => {
    const { asked, write, written, gateway } = await start(['Approve', 'Reject', null], { era })
    const done = await write('one\nInnocent: "yes"\u202e\u{e0080}\u2065\u{e0141}')
    expect(textOf(done)).toBe('written')
    expect(route(done)).toMatchObject({ server: 'steady', tool: 'write', approvedBy: 'client' })
    expect(asked[0]?.message).toContain('"test/1" wants to run the tool "write" of the server "steady"')
    expect(asked[0]?.message).toContain(
      String.raw`"message": "one\nInnocent: \"yes\"\u{202e}\u{e0080}\u{2065}\u{e0141}"`
    )
    expect(code(await write('two'))).toBe('approval_denied')
    expect(code(await write('three'))).toBe('approval_denied')
    expect(asked).toHaveLength(3)
    expect(written().filter((line) => !line.startsWith('Innocent'))).toEqual(['one'])
    const echo = { server: 'steady', tool: 'echo', params: { message: 'free' } }
    expect(textOf(await gateway.call('execute', echo))).toBe('free')
    expect(asked).toHaveLength(3)
  })

  it.each(ERAS)('is not asked for again if the user says so (%s)', async (era) => {
    const { asked, write, written } = await start(['Approve, and do not ask again for this tool'], { era })
    await write('one')
    expect(route(await write('two'))).toMatchObject({ approvedBy: 'memory' })
    expect(written()).toEqual(['one', 'two'])
    expect(asked).toHaveLength(1)
  })

  it.each(ERAS)('is refused with advice if nobody can be asked (%s)', async (era) => {
    const { write, written } = await start(undefined, { era })
    const refused = await write('one')
    expect([code(refused), refused.isError]).toEqual(['approval_unavailable', true])
    expect(textOf(refused)).toMatch(/mcp-orchestrator serve.*mcp\.json/)
    expect(written()).toEqual([])
  })

  it('is asked for in the client in pass-through mode too', async () => {
    const { gateway, asked, written } = await start(['Approve', 'Reject'], { env: { GATEWAY_EXPOSE: 'steady' } })
    expect(textOf(await gateway.call('write', { message: 'one' }))).toBe('written')
    expect(code(await gateway.call('write', { message: 'two' }))).toBe('approval_denied')
    expect([written(), asked.length]).toEqual([['one'], 2])
  })
})
