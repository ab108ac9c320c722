import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import {
  type LabelledSentence,
  readLines,
  startEightServers,
  type ToolCall,
  writingTools
} from '../../bench/sentences/eight-servers.ts'
import { child } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../support/eventually.ts'
import {
  type GatewayProcess,
  type GatewayProcessOptions,
  processesWith,
  startGateway
} from '../support/gateway-process.ts'
import { textOf } from '../support/text-of.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const ERAS = ['legacy', 'auto'] as const
const APPROVE = 'Approve'
const reads = { annotations: { readOnlyHint: true } }
const destroys = { annotations: { readOnlyHint: false, destructiveHint: true } }
const id = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] }

const KUBERNETES = [
  { name: 'cleanup', description: 'Cleanup all managed resources of kubernetes', ...destroys },
  { name: 'get_pods', description: 'Get all pods of kubernetes', ...reads }
]
const BROWSER = [
  { name: 'browser_close', description: 'Close the browser page', annotations: { readOnlyHint: false } },
  { name: 'browser_snapshot', description: 'Snapshot of the browser page', ...reads }
]
const DOCKER = [
  { name: 'remove_container', description: 'Remove a container', inputSchema: id, ...destroys },
  {
    name: 'purge_volumes',
    description: 'Purge unused volumes',
    annotations: { readOnlyHint: true, destructiveHint: true }
  }
]
const NOTES = [
  { name: 'list_notes', description: 'List all notes in the notebook.' },
  { name: 'list_and_archive_notes', description: 'List the notes that are done and archive them.' },
  { name: 'shred_notes', description: 'Shred the notes in the notebook.' }
]

interface Means extends GatewayProcessOptions {
  /** The answers of the client's user; undefined if there is none. */
  answers?: string[]
  /** More keys of the entries. */
  more?: Record<string, Record<string, unknown>>
}

async function start({ answers, more = {}, ...options }: Means = {}) {
  const questions: string[] = []
  const gateway: GatewayProcess = await startGateway(
    ({ dir }) => {
      const entry = (name: string, tools: object[]) => {
        writeFileSync(join(dir, `${name}.json`), JSON.stringify(tools))
        return { [name]: child('shaped', [join(dir, `${name}.json`), join(dir, 'calls')], more[name]) }
      }
      return {
        ...entry('kubernetes', KUBERNETES),
        ...entry('browser', BROWSER),
        ...entry('docker', DOCKER),
        ...entry('notes', NOTES)
      }
    },
    {
      ...options,
      capabilities: answers ? { elicitation: { form: {} } } : {},
      onClient(client) {
        if (!answers) return
        client.setRequestHandler('elicitation/create', ({ params }) => {
          questions.push(params.message)
          return { action: 'accept', content: { answer: answers.shift() ?? 'Reject' } }
        })
      }
    }
  )
  closers.push(() => gateway.end())
  const ran = () => {
    const file = join(gateway.dir, 'calls')
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  }
  // On a busy machine, listing all servers takes longer than one request waits for it.
  const found = async () => (await gateway.call('find_tool', { query: 'anything' })).structuredContent
  await eventually('all servers are listed', async () => !JSON.stringify(await found()).includes('"pending":["'))
  const execute = (args: Record<string, unknown>) => gateway.call('execute', args)
  const status = async (args: Record<string, unknown>) =>
    (await execute(args)).structuredContent as Record<string, unknown>
  return { gateway, execute, status, ran, questions }
}

describe('a sentence', { timeout: 60_000 }, () => {
  // Checked: if every tool counts as a reader, all of them run.
  it.each(ERAS)('runs no tool that may write, whatever it says and whatever else is given (%s)', async (era) => {
    const { status, execute, ran } = await start({ era })
    for (const request of [
      'clean up kubernetes',
      'do not clean up kubernetes',
      'how do I clean up kubernetes resources?',
      'what does cleanup do?',
      'never cleanup all managed resources',
      'if the tests fail, cleanup kubernetes'
    ]) {
      expect(await status({ request }), request).toMatchObject({
        status: 'needs_confirmation',
        server: 'kubernetes',
        tool: 'cleanup',
        params: {},
        confidence: expect.any(Number),
        reason: expect.stringContaining('"server", "tool" and all "params"'),
        candidates: expect.any(Array)
      })
    }
    expect(await status({ request: 'cleanup', server: 'kubernetes', params: {} })).toMatchObject({ tool: 'cleanup' })
    expect(await status({ request: "don't close the browser" })).toMatchObject({ tool: 'browser_close' })
    const picture = await status({ request: 'remove the picture, id=42' })
    expect(picture).toMatchObject({ status: 'needs_confirmation', tool: 'remove_container', params: { id: 42 } })
    // Says that it reads and that it destroys: it does not count as a reader.
    expect(await status({ request: 'purge volumes' })).toMatchObject({ status: 'needs_confirmation', server: 'docker' })
    expect(ran()).toEqual([])
    // Named, it runs.
    expect(textOf(await execute({ server: 'kubernetes', tool: 'cleanup' }))).toBe('ran cleanup')
    expect(textOf(await execute({ tool: 'remove_container', request: 'remove it, id=42' }))).toBe(
      'ran remove_container'
    )
    expect(ran()).toEqual(['cleanup {}', 'remove_container {"id":42}'])
  })

  it('runs readers: by annotation, by `readOnly` of the entry, or by plain wording if the server annotates nothing', async () => {
    const more = { browser: { readOnly: ['browser_*'] }, docker: { approval: { '*': 'allow' }, readOnly: ['*'] } }
    const { execute, status, ran } = await start({ more })
    await execute({ request: 'get all pods of kubernetes' })
    await execute({ request: 'close the browser page' })
    await execute({ request: 'list all notes in the notebook' })
    const sure = ['get_pods {}', 'browser_close {}', 'list_notes {}']
    expect(ran()).toEqual(sure)
    for (const request of ['shred the notes', 'list and archive notes that are done', 'remove container id=7'])
      expect(await status({ request }), request).toMatchObject({ status: 'needs_confirmation' })
    // Not even a reader, where the sentence says not to, or only perhaps.
    for (const request of ['do not list all notes in the notebook', 'if I am late, list all notes in the notebook'])
      expect(await status({ request }), request).toMatchObject({ status: 'needs_confirmation', tool: 'list_notes' })
    // An order to change something, or another language, may fit the words of a reader.
    const doubtful = ['delete all notes in the notebook', 'list all notes in the notebook and then delete them']
    for (const request of [
      ...doubtful,
      'get rid of all notes in the notebook',
      'wenn Bob zustimmt, list all notes in the notebook',
      'notebook の notes を消して'
    ])
      expect(await status({ request, server: 'notes' }), request).not.toMatchObject({ content: expect.anything() })
    expect(await status({ request: doubtful[1] })).toMatchObject({
      status: 'needs_confirmation',
      tool: 'list_notes',
      reason: expect.stringContaining('The request says "delete", and this tool only reads.')
    })
    expect(ran()).toEqual(sure)
  })

  it('says every reason why nothing ran, and names the values that it has no use for', async () => {
    const { status, ran } = await start()
    const reason = async (request: string) => (await status({ request })).reason
    const both = await reason('do not clean up kubernetes')
    expect(both).toContain('The request says what not to do.')
    expect(both).toContain('This tool is not known to only read.')
    expect(await status({ request: 'do not remove the container' })).toMatchObject({
      status: 'needs_params',
      reason: expect.stringMatching(/^The request says what not to do\. Nothing was run\./)
    })
    expect(await reason('get all pods of kubernetes in nginx-123, at most 7')).toMatch(
      /none of "params": 7, "nginx-123"/
    )
    expect(await status({ request: 'what does shred_notes do?' })).toMatchObject({
      explanation: 'Shred the notes in the notebook.'
    })
    expect(await status({ request: 'thanks!' })).toMatchObject({ status: 'needs_choice', candidates: [] })
    expect(await status({ request: 'xyzzy plugh' })).toMatchObject({
      status: 'needs_choice',
      candidates: [],
      reason: expect.stringContaining('list_capabilities')
    })
    expect(ran()).toEqual([])
  })

  it.each(ERAS)('runs a write after the client’s user has approved exactly that call (%s)', async (era) => {
    const { execute, ran, questions } = await start({ era, answers: [APPROVE, 'Reject', 'Reject'] })
    expect(textOf(await execute({ request: 'remove the picture, id=42' }))).toBe('ran remove_container')
    expect(questions[0]).toMatch(/"remove_container".*"docker".*"id": 42/s)
    expect(questions[0]).toContain('"remove the picture, id=42"')
    const refused = await execute({ request: 'do not clean up kubernetes' })
    expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringMatching(/kubernetes\/cleanup.*not run/)])
    // One approval is for one call.
    await execute({ request: 'remove the picture, id=42' })
    expect(questions).toHaveLength(3)
    expect(questions[1]).toMatch(/The request says what not to do\. .*not known to only read/)
    expect(ran()).toEqual(['remove_container {"id":42}'])
  })

  it('always gets the other candidates if it gets no result', async () => {
    const { status } = await start()
    const others = (answer: Record<string, unknown>) =>
      (answer.candidates as { tool: string }[]).map(({ tool }) => tool)
    const unnamed = await status({ request: 'remove the container' })
    expect(unnamed).toMatchObject({ status: 'needs_params', tool: 'remove_container', problems: ['id is missing'] })
    expect(others(unnamed)).not.toContain('remove_container')
    // A wrong tool was named: the request leads on to the right one.
    const wrong = { server: 'docker', tool: 'remove_container', request: 'get all pods of kubernetes' }
    const named = await status(wrong)
    expect(named).toMatchObject({ status: 'needs_params', tool: 'remove_container' })
    expect(others(named)[0]).toBe('get_pods')
    expect(others(await status({ server: 'docker', tool: 'remove_container' }))).toEqual(expect.any(Array))
  })

  it('runs nothing that has become a write since it was last seen', async () => {
    const { gateway, execute, status, ran } = await start({ more: { kubernetes: { idleSeconds: 0.05 } } })
    const request = 'get all pods of kubernetes'
    expect(textOf(await execute({ request }))).toBe('ran get_pods')
    const now = KUBERNETES.map(({ name, description }) => ({ name, description, ...destroys }))
    writeFileSync(join(gateway.dir, 'kubernetes.json'), JSON.stringify(now))
    // Until it stops because it is idle, its tool counts as a reader.
    await eventually('it to stop', () => processesWith(join(gateway.dir, 'kubernetes.json')).length === 0)
    expect(textOf(await execute({ request }))).toMatch(/get_pods has just changed and was not run/)
    expect(await status({ request })).toMatchObject({ status: 'needs_confirmation', tool: 'get_pods' })
    expect(ran()).toEqual(['get_pods {}'])
  })

  // Checked: if the current declaration decides, the tool runs.
  it('runs no tool that its server has turned into a reader, until someone accepts the change', async () => {
    const { gateway, execute, status, ran } = await start({ more: { kubernetes: { idleSeconds: 0.05 } } })
    await execute({ server: 'kubernetes', tool: 'get_pods' })
    const now = KUBERNETES.map(({ name, description }) => ({ name, description, ...reads }))
    writeFileSync(join(gateway.dir, 'kubernetes.json'), JSON.stringify(now))
    await eventually('it to stop', () => processesWith(join(gateway.dir, 'kubernetes.json')).length === 0)
    // The gateway sees the new definitions.
    await execute({ server: 'kubernetes', tool: 'get_pods' })
    expect(await status({ request: 'clean up kubernetes' })).toMatchObject({
      status: 'needs_confirmation',
      tool: 'cleanup',
      reason: expect.stringContaining('Its definition has changed, and nobody has accepted the change.')
    })
    expect(textOf(await execute({ request: 'get all pods of kubernetes' }))).toBe('ran get_pods')
    expect(ran()).toEqual(['get_pods {}', 'get_pods {}', 'get_pods {}'])
  })

  it('sends parameters to a tool only if the tool knows them and is certain enough', async () => {
    const { status, ran } = await start()
    expect(await status({ request: 'get all pods of kubernetes', params: { password: 'x' } })).toMatchObject({
      status: 'needs_confirmation',
      tool: 'get_pods',
      reason: expect.stringContaining('This tool has no such parameters: "password".'),
      candidates: expect.any(Array)
    })
    expect(ran()).toEqual([])
  })

  // Checked: if values are filled in whatever the sentence says, all of these run.
  it('fills a named tool that may write only if it plainly orders the call and every value is used', async () => {
    const text = { type: 'string' }
    const order = { type: 'object', properties: { id: text, amount: { type: 'number' } }, required: ['id'] }
    const SHOP = [
      { name: 'refund_order', description: 'Refund an order.', inputSchema: order, ...destroys },
      { name: 'restart_server', description: 'Restart a server.', inputSchema: { properties: { name: text } } },
      { name: 'get_order', description: 'Get the details of an order.', inputSchema: order, ...reads }
    ]
    const gateway = await startGateway(({ dir }) => {
      writeFileSync(join(dir, 'shop.json'), JSON.stringify(SHOP))
      return { shop: child('shaped', [join(dir, 'shop.json'), join(dir, 'calls')]) }
    })
    closers.push(() => gateway.end())
    const execute = (tool: string, request: string, more = {}) =>
      gateway.call('execute', { server: 'shop', tool, request, ...more })
    for (const [tool, request] of [
      ['refund_order', 'never refund order id=A-9'],
      ['refund_order', 'refund all orders except id=A-9'],
      ['refund_order', 'refund every order but id=A-9'],
      ['refund_order', 'keep order id=A-9, refund the others'],
      ['refund_order', 'refund order id=A-9 only if it is unpaid'],
      ['refund_order', 'refund order id=A-9 if he is fired'],
      ['refund_order', 'what happens if I refund order id=A-9?'],
      ['refund_order', 'refund orders older than id=A-9'],
      ['refund_order', 'refund order id=A-9 with 20 euros'],
      ['refund_order', 'refund order id=A-9 tomorrow'],
      ['restart_server', 'restart the server "db1"'],
      ['restart_server', 'do not restart the server'],
      ['restart_server', 'should I restart the server?']
    ] as const) {
      const { structuredContent } = await execute(tool, request)
      const status = expect.stringMatching(/^needs_(params|confirmation)$/)
      const reason = expect.stringMatching(/Nothing was run\..* call again with .*"params"/)
      expect(structuredContent, request).toMatchObject({ status, tool, reason })
    }
    // Not even a tool that reads gets a value that the sentence leaves out.
    const other = await execute('get_order', 'get any order other than "A-9"')
    expect(other.structuredContent).toMatchObject({ status: 'needs_params', params: {} })
    expect(existsSync(join(gateway.dir, 'calls'))).toBe(false)
    await execute('refund_order', 'please refund the order with id "A-9", amount=20')
    await execute('restart_server', 'do not restart it', { params: {} })
    await execute('restart_server', 'restart the server, name=db1')
    expect(readFileSync(join(gateway.dir, 'calls'), 'utf8').trim().split('\n')).toEqual([
      'refund_order {"id":"A-9","amount":20}',
      'restart_server {}',
      'restart_server {"name":"db1"}'
    ])
  })

  it('leads to a question if two servers have the same tool and it names neither', async () => {
    const tools = ({ dir }: { dir: string }) => {
      writeFileSync(join(dir, 'pods.json'), JSON.stringify(KUBERNETES))
      return child('shaped', [join(dir, 'pods.json'), join(dir, 'calls')])
    }
    const gateway = await startGateway((at) => ({ prod: tools(at), staging: tools(at) }))
    closers.push(() => gateway.end())
    const execute = (request: string) => gateway.call('execute', { request })
    const { structuredContent } = await execute('get all pods of kubernetes')
    expect(structuredContent).toMatchObject({ status: 'needs_choice' })
    expect(JSON.stringify(structuredContent)).toMatch(/"prod".*"staging"|"staging".*"prod"/)
    expect(textOf(await execute('get all pods of kubernetes on staging'))).toBe('ran get_pods')
  })

  it('is told that a server is still starting, and runs no uncertain match on another one meanwhile', async () => {
    const MAIL = [
      { name: 'list_messages', description: 'List all messages in the mailbox.', ...reads },
      { name: 'delete_message', description: 'Delete a message in the mailbox.', inputSchema: id, ...destroys }
    ]
    const gateway = await startGateway(({ dir }) => {
      writeFileSync(join(dir, 'mail.json'), JSON.stringify(MAIL))
      return {
        mail: child('shaped', [join(dir, 'mail.json'), join(dir, 'calls')]),
        slow: { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'] }
      }
    })
    closers.push(() => gateway.end())
    const asked = [
      ['list all orders', 'needs_choice'],
      ['xyzzy plugh', 'needs_choice'],
      ['delete the message in the mailbox', 'needs_params'],
      ['delete the message in the mailbox, id=4', 'needs_confirmation']
    ] as const
    await gateway.call('explain_tool', { server: 'mail', tool: 'list_messages' })
    const sure = gateway.call('execute', { request: 'list all messages in the mailbox' })
    const answers = await Promise.all(asked.map(([request]) => gateway.call('execute', { request })))
    expect(textOf(await sure)).toBe('ran list_messages')
    expect(answers).toMatchObject(asked.map(([, status]) => ({ structuredContent: { status, pending: ['slow'] } })))
    expect(answers.slice(0, 2).map(textOf)).toEqual([
      expect.stringMatching(/still starting \(slow\): call again, or name .*list_messages/),
      expect.stringContaining('still starting (slow): call again')
    ])
    expect(readFileSync(join(gateway.dir, 'calls'), 'utf8')).toBe('list_messages {}\n')
  })

  it('is routed by earlier choices of its client, and still runs no write by itself', async () => {
    const { gateway, execute, status, ran } = await start()
    const first = async (query: string) => {
      const { matches } = (await gateway.call('find_tool', { query, limit: 50 })).structuredContent as {
        matches: { tool: string }[]
      }
      return matches[0]?.tool
    }
    const request = 'tidy up my browser notes'
    expect(await first(request)).not.toBe('shred_notes')
    for (let time = 0; time < 4; time += 1) {
      await first(request)
      await execute({ server: 'notes', tool: 'shred_notes', params: {} })
    }
    expect(await first(request)).toBe('shred_notes')
    expect(await status({ request })).toMatchObject({ status: 'needs_confirmation', tool: 'shred_notes' })
    expect(ran()).toEqual(Array(4).fill('shred_notes {}'))
  })

  // Checked: if every tool counts as a reader, orders run; if values are not matched to parameters, a third of the readers run.
  it('of 200 over eight real servers runs no write, and most that ask to read with the right values', async () => {
    const eight = await startEightServers()
    closers.push(() => eight.end())
    const sentences = readLines<LabelledSentence>('sentences')
    const writers = writingTools()
    const wrong: { request: string; ran: ToolCall }[] = []
    let right = 0
    for (const { request, may, reads: isPlain } of sentences) {
      const { ran } = await eight.execute({ request })
      const isRight = ran !== undefined && may.some((call) => isDeepStrictEqual(call, ran))
      if (isRight && isPlain) right += 1
      if (ran && !isRight) wrong.push({ request, ran })
    }
    expect(sentences).toHaveLength(200)
    expect(wrong.filter(({ ran }) => writers.has(`${ran.server}/${ran.tool}`))).toEqual([])
    expect(wrong.length, JSON.stringify(wrong)).toBeLessThanOrEqual(4)
    const plain = sentences.filter(({ reads: isPlain }) => isPlain).length
    expect(right / plain).toBeGreaterThanOrEqual(0.6)
  })
})
