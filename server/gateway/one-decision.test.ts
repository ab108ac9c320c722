import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type LabelledRequest,
  type LabelledSentence,
  type RecordedTool,
  readLines
} from '../../bench/sentences/eight-servers.ts'
import { PATIENCE_MS } from '../../tests/support/patience-ms.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { noAudit } from '../audit/audit.fixture.ts'
import { child, LOCAL, openTestConnections } from '../connections/connections.fixture.ts'
import { silentLogger } from '../lib/logger.ts'
import { createPolicy } from '../policy/approval-policy.ts'
import { createRouter } from '../routing/router.ts'
import { AT_ONCE } from '../routing/usage/usage-memory.ts'
import { parameterText } from '../tools/parameter-text.ts'
import { Gateway } from './execute/gateway.ts'

const SERVERS = ['everything', 'filesystem', 'github']

async function open() {
  const dir = temporaryFolder()
  const entries = SERVERS.map((server) => {
    const own = readLines<RecordedTool>('tools').filter((tool) => tool.server === server)
    writeFileSync(join(dir, server), JSON.stringify(own.map(({ server: _, ...tool }) => tool)))
    return [server, child('shaped', [join(dir, server), join(dir, 'calls')])]
  })
  const test = await openTestConnections(Object.fromEntries(entries))
  const router = createRouter({ schedule: AT_ONCE })
  const context = { caller: LOCAL, signal: new AbortController().signal }
  for (const server of SERVERS) {
    const tools = await test.connections.list(server, context)
    const routable = tools.map(({ name, description, inputSchema }) => {
      return { server, name, description, params: parameterText(inputSchema) }
    })
    router.setServer(server, routable)
  }
  const policy = createPolicy([{ glob: '*', rule: 'allow' }])
  const core = { ...test, router, policy, audit: noAudit, learn: () => {} }
  const gateway = new Gateway({ version: '0', logger: silentLogger, core: async () => core })
  const find = async (query: string, more: Record<string, unknown> = {}) => {
    const { structuredContent } = await gateway.call('find_tool', { query, ...more }, context)
    return structuredContent as { abstained: boolean; matches: Chosen[] }
  }
  /** The tool that was run or asked about; undefined if the caller must choose one. */
  const execute = async (request: string): Promise<Chosen | undefined> => {
    const { structuredContent, _meta } = (await gateway.call('execute', { request }, context)) as {
      structuredContent?: Chosen & { status?: string }
      _meta?: Record<string, Chosen>
    }
    return (
      _meta?.['mcp-orchestrator/route'] ??
      (structuredContent?.status === 'needs_choice' ? undefined : structuredContent)
    )
  }
  return { find, execute, router, close: () => test.close() }
}

interface Chosen {
  server: string
  tool: string
  confidence: number
}

const pick = ({ server, tool, confidence }: Chosen) => ({ server, tool, confidence })

let gateway: Awaited<ReturnType<typeof open>>
beforeAll(async () => {
  gateway = await open()
}, PATIENCE_MS)
afterAll(() => gateway.close())

async function expectOneDecision(requests: readonly string[]): Promise<void> {
  for (const request of requests) {
    const { abstained, matches } = await gateway.find(request)
    const done = await gateway.execute(request)
    const found = abstained || !matches[0] ? undefined : pick(matches[0])
    expect({ request, found }).toEqual({ request, found: done && pick(done) })
  }
}

const requests = readLines<LabelledRequest>('requests')
const sentences = readLines<LabelledSentence>('sentences').map(({ request }) => request)

// Each was seen failing: without the values, find_tool and execute disagreed about 211 of these 350.
it('find_tool abstains if execute asks for a choice, and otherwise its first match is the tool of execute', async () => {
  await expectOneDecision([...requests.map(({ request }) => request), ...sentences])
})

it('so also with past choices, whose order the other matches keep', async () => {
  for (const [at, { request, server, tool }] of requests.entries()) gateway.router.learn({ request, server, tool, at })
  const some = sentences.filter((_, at) => at % 3 === 0)
  await expectOneDecision(some)
  for (const query of some) {
    const { matches } = await gateway.find(query, { limit: 20 })
    const sure = matches.map(({ confidence }) => confidence)
    expect(sure).toEqual(sure.toSorted((a, b) => b - a))
  }
})

it('the threshold of a caller is compared with the confidence that it is shown', async () => {
  const query = 'find the files'
  const { matches } = await gateway.find(query)
  const shown = matches[0]?.confidence ?? 0
  expect(shown).toBeLessThan(0.9)
  expect(await gateway.find(query, { threshold: shown - 0.01 })).toMatchObject({ abstained: false })
  expect(await gateway.find(query, { threshold: shown + 0.01 })).toMatchObject({ abstained: true })
})
