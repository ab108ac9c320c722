/** Measures the time from spawning the gateway to its first tool list, with one and eight servers, against a bare MCP server; and its memory. */
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'rolldown'
import { hasMinilm } from '../../server/models/local/minilm-files.ts'
import { vectorsFolder } from '../routing-vectors.ts'
import { round, summary, timed } from '../statistics.ts'
import { connectStdio, everythingEntry, type Folder, registryFolder, startGateway } from './ways.ts'

const ROUNDS = 25
/** The tools are embedded meanwhile. */
const SENTENCES = 100
const KILO = 1024

export interface StartTimes {
  startToListMs: Record<string, { p50: number; p99: number; n: number; ratio: number }>
  /** In MB; `afterACall` includes everything that is loaded on demand. */
  memoryWithEightServers: { idle: Memory; afterACall: Memory }
  /** The most while requests are routed by meaning; undefined if the routing bench has not installed the model. */
  memoryWithEmbeddings: Memory | undefined
}

interface Memory {
  rssMb: number
  pssMb: number
}

export async function startTimes(): Promise<StartTimes> {
  const one = registryFolder(servers(1))
  const eight = registryFolder(servers(8))
  const bundled = await bundleBareServer(one.dir)
  const bare = join(import.meta.dirname, 'bare-server.ts')
  const ways = {
    bareBundled: () => connectStdio(process.execPath, [bundled]),
    bareUnbundled: () => connectStdio(process.execPath, [bare]),
    oneServer: () => startGateway(one),
    eightServers: () => startGateway(eight)
  }
  const times = Object.entries(ways).map(([name, start]) => ({ name, start, ms: [] as number[] }))
  for (let round = -2; round < ROUNDS; round++) {
    for (const { start, ms } of times) {
      const took = await firstList(start)
      if (round >= 0) ms.push(took)
    }
  }
  const bareMs = summary(times[0]?.ms ?? []).p50
  const figures = times.map(({ name, ms }) => [name, { ...summary(ms), ratio: round(summary(ms).p50 / bareMs) }])
  const memory = await idleMemory(eight)
  for (const folder of [one, eight]) folder.remove()
  return {
    startToListMs: Object.fromEntries(figures),
    memoryWithEightServers: memory,
    memoryWithEmbeddings: await memoryWithEmbeddings()
  }
}

function servers(count: number): Record<string, typeof everythingEntry> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`server-${at}`, everythingEntry]))
}

async function firstList(start: () => ReturnType<typeof connectStdio>): Promise<number> {
  let close = async () => {}
  const ms = await timed(async () => {
    const { client } = await start()
    close = () => client.close()
    await client.listTools()
  })
  await close()
  return ms
}

async function idleMemory(folder: Folder): Promise<StartTimes['memoryWithEightServers']> {
  const { client, pid } = await startGateway(folder)
  await client.listTools()
  const idle = memoryOf(pid)
  await client.callTool({ name: 'list_capabilities', arguments: {} })
  const arguments_ = { server: 'server-0', tool: 'echo', params: { message: 'hello' } }
  await client.callTool({ name: 'execute', arguments: arguments_ })
  const afterACall = memoryOf(pid)
  await client.close()
  return { idle, afterACall }
}

async function memoryWithEmbeddings(): Promise<Memory | undefined> {
  const { model } = vectorsFolder()
  if (!hasMinilm(model)) return undefined
  const folder = registryFolder(servers(1))
  cpSync(model, join(folder.dir, 'data', 'embeddings'), { recursive: true })
  const { client, pid } = await startGateway(folder)
  let most = memoryOf(pid)
  for (let turn = 0; turn < SENTENCES; turn++) {
    await client.callTool({ name: 'find_tool', arguments: { query: `what do ${turn} and 3 make` } })
    const now = memoryOf(pid)
    if (now.pssMb > most.pssMb) most = now
  }
  await client.close()
  folder.remove()
  return most
}

function memoryOf(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const mb = (name: string) => Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]) / KILO)
  return { rssMb: mb('Rss'), pssMb: mb('Pss') }
}

async function bundleBareServer(dir: string): Promise<string> {
  const file = join(dir, 'bare.mjs')
  const input = join(import.meta.dirname, 'bare-server.ts')
  await build({ input, platform: 'node', logLevel: 'silent', output: { file, format: 'esm', codeSplitting: false } })
  return file
}
