/**
 * Solves each task in three ways: with all tools of the servers, with the gateway's four tools, and with a program. Counts what the model
 * writes (arguments) and reads (results), each once; the lists of tools are not counted.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { outcomeOf } from '../../server/code/call-outcome.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { ApprovalInbox } from '../../server/policy/approval-inbox.ts'
import { openEmbeddedStore } from '../../server/storage/embedded/open-embedded-store.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { type GatewayProcess, startGateway } from '../../tests/support/gateway-process.ts'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { readProgram } from '../../workspace-server/code/read-program.ts'
import { connectStdio } from '../gateway/ways.ts'
import { quantile, round, step } from '../statistics.ts'
import { type Cost, Meter, MODEL, type Result, TOKENIZER, withModelMs } from './meter.ts'
import { openSite, prepareFiles, type ServerEntry, taskServers } from './task-world.ts'
import { TASKS, type Task } from './tasks.ts'

const GOALS = { allTools: 0.15, fourTools: 0.4 }

type Call = (server: string, tool: string, args: Result) => Promise<Result>
type Servers = Record<string, ServerEntry>

interface Solver {
  solve(code: string, meter: Meter): Promise<unknown>
  close(): Promise<unknown>
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

const USE = /tools(?:\.(\w+)|\['([\w-]+)'\])(?:\.(\w+)|\['([\w-]+)'\])/g

/** `[server, tool]` of all that a program names. */
function toolsUsed(code: string): string[][] {
  const named = [...code.matchAll(USE)].map(([, ...names]) => names.filter((name) => name !== undefined).join(' '))
  return [...new Set(named)].map((name) => name.split(' '))
}

async function withAllTools(servers: Servers): Promise<Solver> {
  const clients = new Map<string, Awaited<ReturnType<typeof connectStdio>>['client']>()
  for (const [name, { command, args, env, cwd }] of Object.entries(servers)) {
    const { client } = await connectStdio(command, args, env, 'auto', cwd)
    clients.set(name, client)
    await client.listTools(undefined, { timeout: 60_000 })
  }
  return {
    close: () => Promise.all([...clients.values()].map((client) => client.close())),
    solve: (code, meter) =>
      byHand(code, (server, tool, args) =>
        meter.count({ name: `${server}__${tool}`, arguments: args }, async () => ({
          ...(await clients.get(server)?.callTool({ name: tool, arguments: args }))
        }))
      )
  }
}

/** All searches together, then all explanations. */
async function learnTools(gateway: GatewayProcess, code: string, meter: Meter, more: Result): Promise<void> {
  const used = toolsUsed(code)
  const ask = (name: string, args: Result) => meter.count({ name, arguments: args }, () => gateway.call(name, args))
  await Promise.all(used.map(([server, tool]) => ask('find_tool', { query: `${server} ${tool}`, limit: 1 })))
  await Promise.all(used.map(([server, tool]) => ask('explain_tool', { server, tool, ...more })))
}

/** All servers have started, as for the way that has all tools. */
async function openGateway(servers: Servers, args: string[] = []): Promise<GatewayProcess> {
  const gateway = await startGateway(servers, { args })
  const found = async () => (await gateway.call('find_tool', { query: 'anything' })).structuredContent
  await eventually('all servers are listed', async () => !JSON.stringify(await found()).includes('"pending":["'))
  return gateway
}

async function withFourTools(servers: Servers): Promise<Solver> {
  const gateway = await openGateway(servers)
  return {
    close: () => gateway.end(),
    async solve(code, meter) {
      await learnTools(gateway, code, meter, {})
      return byHand(code, (server, tool, params) => {
        const args = { server, tool, params }
        return meter.count({ name: 'execute', arguments: args }, () => gateway.call('execute', args))
      })
    }
  }
}

/**
 * The first program, which is not counted, gets the engine ready. `isPaced`: the model needs a step before each program; without
 * that, a program waits for a sandbox that its predecessor has used up.
 */
async function withPrograms(servers: Servers, isPaced = false): Promise<Solver> {
  const gateway = await openGateway(servers, ['--code'])
  const run = async (args: Result) => ({
    ...(await gateway.client.callTool({ name: 'run_code', arguments: args }, { timeout: 100_000 }))
  })
  await run({ code: '1' })
  return {
    close: () => gateway.end(),
    async solve(code, meter) {
      await learnTools(gateway, code, meter, { format: 'typescript' })
      if (isPaced) await meter.think()
      let answer = await meter.count({ name: 'run_code', arguments: { code } }, () => run({ code }))
      for (;;) {
        const { status, runId, value, error } = { ...(answer.structuredContent as Result) }
        if (status === 'completed') return value
        if (status !== 'waiting' && status !== 'running') throw new Error(JSON.stringify(error))
        if (status === 'waiting') {
          meter.interruptions++
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

const WAYS = {
  allTools: withAllTools,
  fourTools: withFourTools,
  codeAtOnce: (servers: Servers) => withPrograms(servers),
  code: (servers: Servers) => withPrograms(servers, true)
}
type Way = keyof typeof WAYS
const NAMES = Object.keys(WAYS) as Way[]

export async function threeWays(): Promise<object> {
  const root = temporaryFolder()
  prepareFiles(join(root, 'world'))
  const site = await openSite()
  const costs = new Map<string, Partial<Record<Way, Cost>>>()
  const values = new Map<string, string>()
  for (const way of NAMES) {
    const folder = join(root, way)
    cpSync(join(root, 'world'), folder, { recursive: true })
    const solver = await WAYS[way](await taskServers(folder))
    try {
      await step(`code: twenty tasks, ${way}`, async () => {
        for (const task of TASKS) {
          const cost = await solved(task, { FOLDER: folder, SITE: site.url }, solver, values)
          costs.set(task.name, { ...costs.get(task.name), [way]: cost })
        }
      })
    } finally {
      await solver.close()
    }
  }
  site.close()
  discard(root)
  return summed(costs)
}

async function solved(
  { name, code }: Task,
  places: Record<'FOLDER' | 'SITE', string>,
  solver: Solver,
  values: Map<string, string>
): Promise<Cost> {
  const meter = new Meter()
  const placed = code.replaceAll('FOLDER', places.FOLDER).replaceAll('SITE', places.SITE)
  const value = JSON.stringify(await meter.time(() => solver.solve(placed, meter)))
  if ((values.get(name) ?? value) !== value)
    throw new Error(`"${name}" has two values: ${values.get(name)} and ${value}`)
  values.set(name, value)
  return meter.cost()
}

function summed(costs: Map<string, Partial<Record<Way, Cost>>>): object {
  const all = [...costs.values()]
  const short = [...costs].filter(([name]) => !name.includes('5 MB')).map(([, cost]) => cost)
  const sum = (of: (cost: Cost) => number, way: Way, tasks = all) =>
    tasks.reduce((before, { [way]: cost }) => before + (cost ? of(cost) : 0), 0)
  const tokens = (cost: Cost) => cost.in + cost.out
  const ms = (cost: Cost) => cost.ms
  const total = (way: Way) => ({
    tokens: sum(tokens, way),
    steps: sum(({ steps }) => steps, way),
    ms: sum(ms, way),
    withModelMs: sum(withModelMs, way),
    interruptions: sum(({ interruptions }) => interruptions, way)
  })
  const against = (way: 'allTools' | 'fourTools') => {
    const share = (of: (cost: Cost) => number, tasks = all, ours: Way = 'code') =>
      round(sum(of, ours, tasks) / sum(of, way, tasks))
    const each = (of: (cost: Cost) => number) =>
      all.map(({ code, [way]: other }) => (code && other ? of(code) / of(other) : 0)).sort((a, b) => a - b)
    const shares = each(tokens)
    return {
      tokens: { total: share(tokens), without5MB: share(tokens, short), median: round(quantile(shares, 0.5)) },
      tokensGoal: GOALS[way],
      tasksOverGoal: shares.filter((one) => one > GOALS[way]).length,
      time: { atOnce: share(ms, all, 'codeAtOnce'), paced: share(ms), pacedWithout5MB: share(ms, short) },
      timeWithModel: { total: share(withModelMs), without5MB: share(withModelMs, short) },
      slowerTasksWithModel: each(withModelMs).filter((one) => one > 1).length
    }
  }
  return {
    ...{ tokenizer: TOKENIZER, model: MODEL },
    total: Object.fromEntries(NAMES.map((way) => [way, total(way)])),
    ...{ ofAllTools: against('allTools'), ofFourTools: against('fourTools') },
    tasks: Object.fromEntries(costs)
  }
}
