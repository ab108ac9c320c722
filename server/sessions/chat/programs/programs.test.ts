import { afterEach, describe, expect, it } from 'vitest'
import { PROGRAMS } from '../../../../contract/own-sources.ts'
import { callsOfProgram } from '../../../../contract/programs.ts'
import type { CallEntry } from '../../../../contract/transcript.ts'
import type { ToolSource } from '../../../calls/tool-source.ts'
import { localRealm } from '../../../code/realms/local-realm.fixture.ts'
import { AppError } from '../../../lib/errors.ts'
import type { StepEvent } from '../../../models/port.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import { leaseLost } from '../../../storage/store-errors.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from '../fake-chat.ts'

const opened: FakeChat[] = []
const sent: string[] = []
let realms = 0
const programs = {
  openRealm: async () => {
    realms++
    return localRealm()
  },
  lingerMs: 5,
  pollMs: 2
}

const schema = { type: 'object', properties: { id: { type: 'string' }, to: { type: 'string' } } }
const crm: ToolSource = {
  server: 'crm',
  list: async () => [
    { name: 'list', inputSchema: schema, annotations: { readOnlyHint: true } },
    { name: 'read', inputSchema: schema, isListedReader: true },
    { name: 'peek', inputSchema: schema, annotations: { readOnlyHint: true } },
    { name: 'send', inputSchema: schema },
    { name: 'drop', inputSchema: schema },
    { name: 'hang', inputSchema: schema }
  ],
  async call({ name, args, signal }) {
    if (name === 'hang') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    if (name === 'list') return { content: [{ type: 'text', text: 'x y' }], structuredContent: { ids: ['x', 'y'] } }
    if (name === 'read') return { content: [{ type: 'text', text: `${args.id}@example.test${'.'.repeat(9000)}` }] }
    sent.push(String(args.to))
    return { content: [{ type: 'text', text: 'sent' }] }
  }
}
const RULES = [
  { glob: 'crm/list', rule: 'allow' as const },
  { glob: 'crm/drop', rule: 'deny' as const }
]

/** A model that runs this program and then says what it got. */
function model(code: string): NonNullable<FakeChatOptions['model']> {
  return (request, step): StepEvent[] => {
    if (step === 0) return [called('run_code', JSON.stringify({ code }), 'prog')]
    const answers = request.messages.at(-1)
    return [said(JSON.stringify(answers?.role === 'tool' ? answers.answers[0]?.text : 'none'))]
  }
}

async function open(code: string, more: FakeChatOptions = {}): Promise<FakeChat> {
  const chat = await fakeChat({ model: model(code), sources: [crm], policy: createPolicy(RULES), programs, ...more })
  opened.push(chat)
  return chat
}

async function start(code: string, more?: FakeChatOptions): Promise<FakeChat> {
  const chat = await open(code, more)
  await chat.chat.send('s1', { text: 'go', id: undefined })
  return chat
}

const inner = async ({ chat }: FakeChat): Promise<CallEntry[]> =>
  callsOfProgram((await chat.transcript('s1')).calls, 'prog')
const waiting = (chat: FakeChat, count: number) =>
  expect.poll(async () => (await inner(chat)).filter(({ decision }) => !decision).length).toBe(count)
const approve = async (chat: FakeChat, more: object = {}) => {
  for (const { callId, hash, decision } of await inner(chat))
    if (!decision) await chat.chat.decide('s1', { callId, hash, approved: true, ...more })
}
async function ended(chat: FakeChat): Promise<Record<string, unknown>> {
  const { data } = await chat.until('tool:result', ({ callId }) => callId === 'prog')
  const [part] = data.content as { text: string }[]
  return JSON.parse(part?.text ?? '{}')
}

afterEach(async () => {
  for (const chat of opened.splice(0)) await chat.close()
})

describe('a program in a chat', () => {
  it('runs its reads by the rules, waits for approval of its write, and answers the model once', async () => {
    const before = sent.length
    const chat = await start(`const { ids } = await tools.crm.list()
const mail = await tools.crm.read({ id: ids[0] })
await tools.crm.send({ to: mail.slice(0, 14) })
;({ mail: mail.length, ids })`)
    await waiting(chat, 1)
    const [, read] = await inner(chat)
    expect(read).toMatchObject({ server: 'crm', name: 'read', args: { id: 'x' } })
    await approve(chat)
    await expect.poll(async () => (await inner(chat)).at(-1)?.name).toBe('send')
    await waiting(chat, 1)
    expect((await inner(chat)).at(-1)?.program).toMatchObject({
      line: 3,
      source: 'await tools.crm.send({ to: mail.slice(0, 14) })',
      sources: [{ path: 'to', server: 'crm', tool: 'read', n: 2 }]
    })
    expect(sent.slice(before)).toEqual([])
    await approve(chat)
    expect(await ended(chat)).toEqual({ value: { mail: 9014, ids: ['x', 'y'] }, calls: 3 })
    await chat.until('turn:end')
    expect(sent.slice(before)).toEqual(['x@example.test'])
    // The model got one answer, and the person sees only the beginning of long results.
    expect(chat.requests).toHaveLength(2)
    expect(JSON.stringify(chat.requests[1]?.messages)).not.toContain('example.test....')
    expect(JSON.stringify((await inner(chat))[1]?.result)).toContain('5014 characters, which only the program got')
    expect(await chat.store.events.read('code-run:chat-s1')).toEqual([])
  })

  it('keeps nothing but its log while a person decides, and goes on when they have', async () => {
    const chat = await start('await tools.crm.send({ to: "later" })')
    await waiting(chat, 1)
    const opened = realms
    await expect.poll(async () => (await chat.store.events.read('code-run:chat-s1')).length).toBeGreaterThan(2)
    await expect.poll(() => chat.chat.openCount).toBe(0)
    await approve(chat)
    expect(await ended(chat)).toMatchObject({ value: 'sent' })
    expect(realms).toBe(opened + 1)
    expect(sent.filter((to) => to === 'later')).toHaveLength(1)
  })

  it('learns of a rejection while another of its calls still waits', async () => {
    const chat = await start(`const say = (to) => tools.crm.send({ to }).then(() => 'ok', (error) => error.code)
const [a] = await Promise.all([say('one').then((code) => tools.crm.list().then(() => code)), say('two')])
a`)
    await waiting(chat, 2)
    await expect.poll(() => chat.chat.openCount).toBe(0)
    const [one] = await inner(chat)
    await chat.chat.decide('s1', { callId: one?.callId ?? '', approved: false })
    await expect.poll(async () => (await inner(chat)).some(({ name, result }) => name === 'list' && result)).toBe(true)
    await approve(chat)
    expect(await ended(chat)).toMatchObject({ value: 'approval_denied' })
  })

  // Checked: if all calls are covered, the write is not asked about.
  it('covers the other reads of the program with one approval, but no write, and no tool that only calls itself a reader', async () => {
    const chat = await start(`await Promise.all(['a', 'b', 'c'].map((id) => tools.crm.read({ id })))
await tools.crm.read({ id: 'd' })
await tools.crm.peek({ id: 'e' }).catch(() => {})
await tools.crm.send({ to: 'covered' })`)
    await waiting(chat, 3)
    const [first] = await inner(chat)
    await chat.chat.decide('s1', { callId: first?.callId ?? '', approved: true, reads: true })
    await expect.poll(async () => (await inner(chat)).at(-1)?.name).toBe('peek')
    await waiting(chat, 1)
    const peek = (await inner(chat)).at(-1)
    expect(peek?.program?.isRead).toBeUndefined()
    await chat.chat.decide('s1', { callId: peek?.callId ?? '', approved: false })
    await expect.poll(async () => (await inner(chat)).at(-1)?.name).toBe('send')
    await waiting(chat, 1)
    const by = (await inner(chat)).map(({ name, decision }) => [name, decision?.by])
    expect(by).toEqual([
      ['read', 'human'],
      ['read', 'session'],
      ['read', 'session'],
      ['read', 'session'],
      ['peek', 'human'],
      ['send', undefined]
    ])
    const write = (await inner(chat)).at(-1)?.callId ?? ''
    await expect(chat.chat.decide('s1', { callId: write, approved: true, reads: true })).rejects.toMatchObject({
      code: 'invalid_request'
    })
    await chat.chat.decide('s1', { callId: write, approved: false })
    expect(await ended(chat)).toMatchObject({ error: { code: 'approval_denied' } })
  })

  it('ends with the turn, whether it runs or waits', async () => {
    for (const code of ['await tools.crm.hang()', 'await tools.crm.send({ to: "never" })']) {
      const chat = await start(code, { policy: createPolicy([...RULES, { glob: 'crm/hang', rule: 'allow' }]) })
      await chat.until('tool:approval_required', ({ program }) => program !== undefined)
      if (code.includes('send')) await expect.poll(() => chat.chat.openCount).toBe(0)
      else await chat.until('tool:started', ({ callId }) => callId !== 'prog')
      await chat.chat.cancel('s1')
      const { data } = await chat.until('tool:result', ({ callId }) => callId === 'prog')
      expect(data).toMatchObject({ isError: true, interruptedBy: 'person' })
      if (code.includes('hang')) expect(JSON.stringify(data.content)).toContain('Outcome unknown')
      for (const { decision, result } of await inner(chat)) expect(decision?.approved === false || result).toBeTruthy()
    }
    expect(sent).not.toContain('never')
  })

  it('waits for the approval of a write that the program does not wait for', async () => {
    const chat = await start(`tools.crm.send({ to: 'unwaited' })
await tools.crm.list()
'done'`)
    await expect.poll(async () => (await inner(chat)).find(({ name }) => name === 'list')?.result).toBeTruthy()
    await waiting(chat, 1)
    await approve(chat)
    expect(await ended(chat)).toMatchObject({ value: 'done', calls: 2 })
    expect(sent.filter((to) => to === 'unwaited')).toHaveLength(1)
  })

  it('withdraws the cards of a program that fails', async () => {
    const chat = await start(`tools.crm.send({ to: 'left behind' })
await tools.crm.list()
throw new Error('bad')`)
    const end = await ended(chat)
    expect(JSON.stringify(end)).toMatch(/bad.*Not made, because the program ended: crm\.send\./)
    expect((await inner(chat))[0]).toMatchObject({ decision: { approved: false, by: 'cancel' } })
    expect(sent).not.toContain('left behind')
  })

  // Checked: if the error counts as the outcome of the call, the program gets it, and so does every replay.
  it('is not told that its instance has lost the session for a moment, and goes on', async () => {
    let isLost = false
    const chat = await start(
      `const { ids } = await tools.crm.list()
await tools.crm.list().then(() => ids.length, (error) => error.code)`,
      {
        events: (log) => ({
          ...log,
          append: (...given) => {
            const isSecond = given[1].some(({ data }) => (data.program as { n?: number } | undefined)?.n === 2)
            if (!isSecond || isLost) return log.append(...given)
            isLost = true
            throw leaseLost()
          }
        })
      }
    )
    expect(await ended(chat)).toMatchObject({ value: 2 })
    expect(isLost).toBe(true)
  })

  it('goes on when the engine is back, which was gone after its approval', async () => {
    let openings = 0
    const openRealm = async () => {
      if (++openings > 1 && openings < 4) throw new AppError('unavailable', 'engine_unavailable', 'No engine.')
      return localRealm()
    }
    const chat = await start('await tools.crm.send({ to: "after all" })', { programs: { ...programs, openRealm } })
    await waiting(chat, 1)
    await expect.poll(() => chat.chat.openCount).toBe(0)
    await approve(chat)
    expect(await ended(chat)).toMatchObject({ value: 'sent' })
    expect(sent.filter((to) => to === 'after all')).toHaveLength(1)
    expect(openings).toBe(4)
  })

  it('is offered only where programs are switched on, and can not call itself or the router', async () => {
    const off = await open('1', { programs: undefined })
    await off.chat.send('s1', { text: 'go', id: undefined })
    await off.until('turn:end')
    expect(off.requests[0]?.tools.map(({ name }) => name)).not.toContain('run_code')
    const chat =
      await start(`const tried = [['${PROGRAMS}', 'run_code'], ['mcp-orchestrator', 'execute'], ['crm', 'gone']]
await Promise.all(tried.map(([server, tool]) => tools[server][tool]({}).catch((error) => error.code)))`)
    expect(await ended(chat)).toMatchObject({ value: ['tool_gone', 'tool_gone', 'tool_gone'] })
  })
})

describe('who is asked in a chat', () => {
  const cases = [
    ['allow', 'send', 'policy', true],
    ['deny', 'send', 'policy', false],
    ['ask', 'send', undefined, undefined],
    ['ask', 'list', undefined, undefined],
    ['none', 'list', undefined, undefined],
    ['none', 'send', undefined, undefined]
  ] as const
  // Checked: if calls of programs are approved by themselves, those without a rule have a decision.
  it.each(cases)(
    'rule %s, tool %s: a program gets the decision of a direct call: %s',
    async (rule, tool, by, approved) => {
      const policy = createPolicy(rule === 'none' ? [] : [{ glob: 'crm/*', rule }])
      const direct = await open('', {
        policy,
        model: (_, step) => (step === 0 ? [called(`crm__${tool}`)] : [said('ok')])
      })
      await direct.chat.send('s1', { text: 'go', id: undefined })
      await direct.until('tool:approval_required')
      const call = (await direct.chat.transcript('s1')).calls[`call-crm__${tool}`]
      const chat = await start(`await tools.crm.${tool}({}).catch((error) => error.code)`, { policy })
      await chat.until('tool:approval_required', ({ program }) => program !== undefined)
      const [made] = await inner(chat)
      for (const each of [call, made]) expect([each?.decision?.by, each?.decision?.approved]).toEqual([by, approved])
      await chat.chat.cancel('s1').catch(() => {})
      await direct.chat.cancel('s1').catch(() => {})
    }
  )
})

// Checked: without the limit, the program makes all 400 calls.
it('ends a program that goes on storing when the conversation has reached its limit', async () => {
  let checks = 0
  const full = new AppError('unavailable', 'quota_session_log', 'This conversation has reached its limit.')
  const checkQuota = async () => {
    if (++checks > 5) throw full
  }
  const code = `const x = 'x'.repeat(900_000); for (let n = 0; n < 400; n++) await tools.crm.nothing({ n, x }).catch(() => {})`
  const chat = await start(code, { checkQuota })
  const { data } = await chat.until('tool:result', ({ callId }) => callId === 'prog')
  expect(data).toMatchObject({ isError: true, content: [{ text: full.message }] })
  expect(checks).toBeLessThan(40)
})
