/** Measures the gateway, the command line and the page's API with 10, 100 and 1,000 servers of 20 tools each, and how the figures grow. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readRegistry } from '../server/catalog/registry.ts'
import { StoredTools, toolHash } from '../server/catalog/stored-tools.ts'
import { silentLogger } from '../server/lib/logger.ts'
import { openEmbeddedStore } from '../server/storage/embedded/open-embedded-store.ts'
import { serve, stopServers } from '../tests/support/serve.ts'
import { type Folder, GATEWAY, registryFolder, startGateway } from './gateway/ways.ts'
import { toolsOf } from './many/simulated-tools.ts'
import { NO_LIMITS } from './no-limits.ts'
import { round, step, summary, timed } from './statistics.ts'

const COUNTS = [10, 100, 1000]
const FINDS = 40
const CHILD = join(import.meta.dirname, 'many/simulated-child.ts')

type Figures = Record<string, number>

export async function manyFigures(): Promise<object> {
  const rows: Record<string, Figures> = {}
  for (const count of COUNTS) rows[count] = await step(`many: ${count} servers`, () => figuresOf(count))
  console.error(`${growthTable(rows)}\n`)
  return rows
}

async function figuresOf(count: number): Promise<Figures> {
  const entry = (at: number) => ({ command: process.execPath, args: [CHILD, String(at)] })
  const servers = Object.fromEntries(Array.from({ length: count }, (_, at) => [`server-${at}`, entry(at)]))
  const folder = registryFolder(servers)
  const dataDir = join(folder.dir, 'data')
  try {
    await fillIndex(dataDir, servers)
    return {
      tools: count * toolsOf(0).length,
      ...(await gatewayFigures(folder)),
      ...(await exposedFigures(folder)),
      ...(await commandFigures(folder)),
      ...(await pageFigures(folder, dataDir))
    }
  } finally {
    folder.remove()
  }
}

/** As if every server had been listed once: nobody starts 1,000 servers at a time. */
async function fillIndex(dataDir: string, mcpServers: object): Promise<void> {
  const store = await openEmbeddedStore({ dataDir, logger: silentLogger })
  const stored = new StoredTools(store.keyValues)
  const registry = readRegistry(JSON.stringify({ mcpServers }), 'mcp.json')
  for (const [at, entry] of [...registry.servers.values()].entries()) {
    const tools = toolsOf(at).map((tool) => ({ ...tool, hash: toolHash(tool) }))
    await stored.save(entry.name, {
      fingerprint: entry.fingerprint,
      seenAt: Date.now(),
      tools,
      about: { capabilities: {} }
    })
  }
  await store.close()
}

async function gatewayFigures(folder: Folder): Promise<Figures> {
  let close = async () => {}
  try {
    let opened: Awaited<ReturnType<typeof startGateway>> | undefined
    const startToListMs = await timed(async () => {
      opened = await startGateway(folder)
      await opened.client.listTools()
    })
    if (!opened) throw new Error('The gateway did not start.')
    const { client, pid } = opened
    close = () => client.close()
    const idleRssMb = rssMb(pid)
    const find = (query: string) => client.callTool({ name: 'find_tool', arguments: { query } })
    const firstFindMs = await timed(() => find('export the invoices of the museum'))
    const times: number[] = []
    for (let at = 0; at < FINDS; at++) times.push(await timed(() => find(`count the photos of the harbour ${at}`)))
    const capabilitiesMs = await timed(() => client.callTool({ name: 'list_capabilities', arguments: {} }))
    const [tool] = toolsOf(3)
    const firstCallMs = await timed(() =>
      client.callTool({ name: 'execute', arguments: { server: 'server-3', tool: tool?.name, params: { limit: 1 } } })
    )
    const rss = { idleRssMb, usedRssMb: rssMb(pid) }
    return { startToListMs, firstFindMs, findMs: summary(times).p50, capabilitiesMs, firstCallMs, ...rss }
  } finally {
    await close()
  }
}

async function exposedFigures(folder: Folder): Promise<Figures> {
  let close = async () => {}
  const exposedListMs = await timed(async () => {
    const { client } = await startGateway(folder, 'legacy', ['--expose', 'all'])
    close = () => client.close()
    await client.listTools()
  })
  await close()
  return { exposedListMs }
}

async function commandFigures({ dir, config }: Folder): Promise<Figures> {
  const args = ['servers', 'list', '--json', '--config', config, '--data-dir', join(dir, 'data')]
  const options = { maxBuffer: 256 * 1024 * 1024 }
  return { serversListMs: await timed(() => promisify(execFile)(GATEWAY, args, options)) }
}

async function pageFigures({ config }: Folder, dataDir: string): Promise<Figures> {
  try {
    const served = await serve({ ...NO_LIMITS, MCP_CONFIG: config }, { bundle: true, dataDir })
    const fetched = async () => {
      const response = await fetch(`${served.url}/api/servers`)
      if (!response.ok) throw new Error(`/api/servers answers with ${response.status}.`)
      return (await response.text()).length
    }
    const pageFirstMs = await timed(fetched)
    const pageMs = await timed(fetched)
    return { pageFirstMs, pageMs, pageKb: (await fetched()) / 1024, serveRssMb: rssMb(served.child.pid ?? 0) }
  } finally {
    await stopServers()
  }
}

function rssMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

function growthTable(rows: Record<string, Figures>): string {
  const names = Object.keys(rows[COUNTS[0] ?? 0] ?? {})
  const lines = names.map((name) => {
    const values = COUNTS.map((count) => rows[count]?.[name] ?? Number.NaN)
    const growth = round((values.at(-1) ?? Number.NaN) / (values[1] ?? Number.NaN))
    return [name, ...values.map((value) => String(round(value))), `×${growth}`]
  })
  const table = [['servers', ...COUNTS.map(String), '100 → 1,000'], ...lines]
  const widths = table[0]?.map((_, at) => Math.max(...table.map((line) => line[at]?.length ?? 0))) ?? []
  return table.map((line) => line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')).join('\n')
}
