/**
 * Solves each task in three ways: with all tools of the servers, with the gateway's four tools, and with a program. Counts what the model
 * writes (arguments) and reads (results), each once; the lists of tools are not counted. Tokens are characters divided by four: an
 * approximation, the same for each way.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { outcomeOf } from '../../server/code/call-outcome.ts'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { ApprovalInbox } from '../../server/policy/approval-inbox.ts'
import { openEmbeddedStore } from '../../server/storage/embedded/open-embedded-store.ts'
import { type GatewayProcess, startGateway } from '../../tests/support/gateway-process.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { readProgram } from '../../workspace-server/code/read-program.ts'
import { connectStdio, everythingEntry } from '../gateway/ways.ts'
import { round, step } from '../statistics.ts'
import { prepareTasks, TASKS, type Task } from './tasks.ts'

const CHARS_PER_TOKEN = 4
const GOALS = { allTools: 0.15, fourTools: 0.4 }

interface Cost {
  in: number
  out: number
  ms: number
  interruptions: number
}
type Result = Record<string, unknown>
type Call = (server: string, tool: string, args: Result) => Promise<Result>

/** The characters of a result that the model reads. */
const seen = ({ content, structuredContent }: Result) => JSON.stringify(content ?? structuredContent ?? '').length
const tokens = (chars: number) => Math.ceil(chars / CHARS_PER_TOKEN)

class Meter {
  readonly cost: Cost = { in: 0, out: 0, ms: 0, interruptions: 0 }

  async count(args: unknown, call: () => Promise<Result>): Promise<Result> {
    this.cost.out += tokens(JSON.stringify(args).length)
    const result = await call()
    this.cost.in += tokens(seen(result))
    return result
  }
}

/** Runs a task outside of a sandbox, with single calls. Returns its value. */
async function byHand(code: string, call: Call): Promise<unknown> {
  const toolsOf = (server: string) =>
    new Proxy(
      {},
      {
        get:
          (_, tool) =>
          async (args: Result = {}) => {
            const outcome = outcomeOf(await call(server, String(tool), args))
            if (outcome.ok) return outcome.value
            throw new Error(outcome.message)
          }
      }
    )
  const tools = new Proxy({}, { get: (_, server) => toolsOf(String(server)) })
  Object.assign(globalThis, { tools })
  return readProgram(code).runInThisContext()
}

function serversIn(folder: string) {
  const script = (name: string) =>
    join(packageRoot(), `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`)
  const memory = {
    command: process.execPath,
    args: [script('memory')],
    env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') }
  }
  return {
    everything: everythingEntry,
    filesystem: { command: process.execPath, args: [script('filesystem'), folder] },
    memory,
    'sequential-thinking': { command: process.execPath, args: [script('sequential-thinking')] }
  }
}

const toolsUsed = (code: string): [string, string][] =>
  [...new Set(code.match(/tools\.(\w+)(?:\.(\w+)|\['([\w-]+)'\])/g) ?? [])].map((use) => {
    const [, server = '', plain, quoted] = /tools\.(\w+)(?:\.(\w+)|\['([\w-]+)'\])/.exec(use) ?? []
    return [server, plain ?? quoted ?? '']
  })

async function withAllTools(folder: string) {
  const clients = new Map<string, Awaited<ReturnType<typeof connectStdio>>['client']>()
  for (const [name, { command, args, ...more }] of Object.entries(serversIn(folder))) {
    clients.set(name, (await connectStdio(command, [...args], 'env' in more ? more.env : {})).client)
  }
  return {
    close: () => Promise.all([...clients.values()].map((client) => client.close())),
    solve: (code: string, meter: Meter) =>
      byHand(code, (server, tool, args) =>
        meter.count({ name: `${server}__${tool}`, arguments: args }, async () => ({
          ...(await clients.get(server)?.callTool({ name: tool, arguments: args }))
        }))
      )
  }
}

async function learnTools(gateway: GatewayProcess, code: string, meter: Meter, more: Result): Promise<void> {
  for (const [server, tool] of toolsUsed(code)) {
    const query = { query: `${server} ${tool}`, limit: 1 }
    await meter.count({ name: 'find_tool', arguments: query }, () => gateway.call('find_tool', query))
    const which = { server, tool, ...more }
    await meter.count({ name: 'explain_tool', arguments: which }, () => gateway.call('explain_tool', which))
  }
}

async function withFourTools(folder: string) {
  const gateway = await startGateway(serversIn(folder))
  return {
    close: () => gateway.end(),
    async solve(code: string, meter: Meter) {
      await learnTools(gateway, code, meter, {})
      return byHand(code, (server, tool, params) => {
        const args = { server, tool, params }
        return meter.count({ name: 'execute', arguments: args }, () => gateway.call('execute', args))
      })
    }
  }
}

async function withPrograms(folder: string) {
  const gateway = await startGateway(serversIn(folder), { args: ['--code'] })
  const run = async (args: Result) => ({
    ...(await gateway.client.callTool({ name: 'run_code', arguments: args }, { timeout: 100_000 }))
  })
  return {
    close: () => gateway.end(),
    async solve(code: string, meter: Meter) {
      await learnTools(gateway, code, meter, { format: 'typescript' })
      let answer = await meter.count({ name: 'run_code', arguments: { code } }, () => run({ code }))
      for (;;) {
        const { status, runId, value, error } = { ...(answer.structuredContent as Result) }
        if (status === 'completed') return value
        if (status !== 'waiting' && status !== 'running') throw new Error(JSON.stringify(error))
        if (status === 'waiting') {
          meter.cost.interruptions++
          await approveAll(gateway.dir)
        }
        answer = await meter.count({ name: 'run_code', arguments: { runId } }, () => run({ runId }))
      }
    }
  }
}

async function approveAll(dir: string): Promise<void> {
  const store = await openEmbeddedStore({ dataDir: `${dir}/data`, deploymentId: undefined, logger: silentLogger })
  const inbox = new ApprovalInbox(store.keyValues)
  for (const { id, hash } of await inbox.open()) await inbox.answer(id, hash, { approved: true })
  await store.close()
}

type Way = 'allTools' | 'fourTools' | 'code'

/** Fails if the ways come to different values. */
export async function threeWays(): Promise<object> {
  const original = temporaryFolder()
  prepareTasks(original)
  const open = { allTools: withAllTools, fourTools: withFourTools, code: withPrograms }
  const costs = new Map<string, Partial<Record<Way, Cost>>>()
  const values = new Map<string, string>()
  for (const [way, start] of Object.entries(open) as [Way, typeof withFourTools][]) {
    const folder = temporaryFolder()
    cpSync(original, folder, { recursive: true })
    const solver = await start(folder)
    try {
      await step(`code: twenty tasks, ${way}`, async () => {
        for (const task of TASKS)
          costs.set(task.name, { ...costs.get(task.name), [way]: await solved(task, folder, solver, values) })
      })
    } finally {
      await solver.close()
    }
  }
  return summed(costs)
}

async function solved(
  { name, code }: Task,
  folder: string,
  solver: { solve(code: string, meter: Meter): Promise<unknown> },
  values: Map<string, string>
): Promise<Cost> {
  const meter = new Meter()
  const began = performance.now()
  const value = JSON.stringify(await solver.solve(code.replaceAll('FOLDER', folder), meter))
  meter.cost.ms = Math.round(performance.now() - began)
  if ((values.get(name) ?? value) !== value)
    throw new Error(`"${name}" has two values: ${values.get(name)} and ${value}`)
  values.set(name, value)
  return meter.cost
}

function summed(costs: Map<string, Partial<Record<Way, Cost>>>): object {
  const total = (way: Way) => {
    const all = [...costs.values()].map((cost) => cost[way])
    const sum = (key: keyof Cost) => all.reduce((before, cost) => before + (cost?.[key] ?? 0), 0)
    return { tokens: sum('in') + sum('out'), ms: sum('ms'), interruptions: sum('interruptions') }
  }
  const [allTools, fourTools, code] = [total('allTools'), total('fourTools'), total('code')]
  const shareOf = (way: Way) => {
    const shares = [...costs.values()].map((cost) => {
      const [ours, theirs] = [cost.code, cost[way]].map((each) => (each?.in ?? 0) + (each?.out ?? 0))
      return (ours ?? 0) / (theirs || 1)
    })
    return round(shares.toSorted((a, b) => a - b)[Math.floor(shares.length / 2)] ?? 0)
  }
  return {
    tokenizer: 'characters / 4',
    total: { allTools, fourTools, code },
    ofAllTools: { total: round(code.tokens / allTools.tokens), median: shareOf('allTools'), goal: GOALS.allTools },
    ofFourTools: { total: round(code.tokens / fourTools.tokens), median: shareOf('fourTools'), goal: GOALS.fourTools },
    tasks: Object.fromEntries(costs)
  }
}
