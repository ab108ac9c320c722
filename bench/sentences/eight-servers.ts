/** The recorded tools of eight real servers, behind the real gateway: every call is only noted. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { child } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { type GatewayProcessOptions, startGateway } from '../../tests/support/gateway-process.ts'

export interface ToolCall {
  server: string
  tool: string
  params: Record<string, unknown>
}

export interface LabelledRequest extends ToolCall {
  request: string
}

export interface LabelledSentence {
  kind: string
  request: string
  /** Plain English for a tool that reads: it should run. */
  reads: boolean
  /** The calls that may run. */
  may: ToolCall[]
  /** The tool that the order is meant for; it must not run. */
  write?: string
}

export interface RecordedTool {
  server: string
  name: string
  description: string
  inputSchema: Record<string, unknown>
  annotations?: { readOnlyHint?: boolean }
}

/** This server says of no tool whether it only reads, so its user does. */
const MORE: Record<string, Record<string, unknown>> = { github: { readOnly: ['get_*', 'list_*', 'search_*'] } }

export type SentenceSet = 'sentences' | 'fresh' | 'later' | 'newest'

export function readLines<T>(name: 'tools' | 'requests' | SentenceSet): T[] {
  const text = readFileSync(join(import.meta.dirname, `${name}.jsonl`), 'utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/** `server/tool` of all that may change something. */
export function writingTools(): Set<string> {
  const writers = readLines<RecordedTool>('tools').filter(({ server, name, annotations }) =>
    server === 'github' ? !/^(?:get|list|search)_/.test(name) : annotations?.readOnlyHint !== true
  )
  return new Set(writers.map(({ server, name }) => `${server}/${name}`))
}

export async function startEightServers(options: GatewayProcessOptions = {}) {
  const tools = Map.groupBy(readLines<RecordedTool>('tools'), ({ server }) => server)
  const gateway = await startGateway(({ dir }) => {
    const entries = [...tools].map(([server, own]) => {
      const file = join(dir, `${server}.json`)
      writeFileSync(file, JSON.stringify(own.map(({ server: _, ...tool }) => tool)))
      return [server, child('shaped', [file, join(dir, `${server}.calls`)], MORE[server])]
    })
    return Object.fromEntries(entries)
  }, options)
  // On a busy machine, listing all servers takes longer than one request waits for it.
  const found = async () => (await gateway.call('find_tool', { query: 'anything' })).structuredContent
  await eventually('all servers are listed', async () => !JSON.stringify(await found()).includes('"pending":["'))
  const calls = (): ToolCall[] =>
    [...tools.keys()].flatMap((server) => {
      const file = join(gateway.dir, `${server}.calls`)
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
      return lines.map((line) => {
        const at = line.indexOf(' ')
        return { server, tool: line.slice(0, at), params: JSON.parse(line.slice(at)) }
      })
    })
  let before = 0
  return {
    gateway,
    /** Calls `execute`: its answer, and the tool call that it made. */
    async execute(args: Record<string, unknown>) {
      const result = await gateway.call('execute', args)
      const all = calls()
      const ran = all.length > before ? newCall(all, result) : undefined
      before = all.length
      return { answer: (result.structuredContent ?? {}) as Record<string, unknown>, ran }
    },
    end: () => gateway.end()
  }
}

/** The route names the server and the tool; what it got is the last call that they noted. */
function newCall(all: ToolCall[], result: Record<string, unknown>): ToolCall | undefined {
  const meta = (result._meta ?? {}) as Record<string, Partial<ToolCall>>
  const route = meta['mcp-orchestrator/route'] ?? {}
  return all.findLast(({ server, tool }) => server === route.server && tool === route.tool)
}
