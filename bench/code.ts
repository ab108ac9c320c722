/**
 * Measures programs (`run_code`) from the client's side: start on a warm sandbox, an inner call against `execute`, replay, and twenty tasks
 * against other ways to solve them.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { silentLogger } from '../server/lib/logger.ts'
import { ApprovalInbox } from '../server/policy/approval-inbox.ts'
import { openEmbeddedStore } from '../server/storage/embedded/open-embedded-store.ts'
import { type GatewayProcess, startGateway } from '../tests/support/gateway-process.ts'
import { threeWays } from './code/three-ways.ts'
import { everythingEntry } from './gateway/ways.ts'
import { round, step, summary, timed } from './statistics.ts'

const STARTS = 10
const CALLS = 100
const TURNS = 5
/** Longer than a sandbox is kept for a run that waits for a person. */
const RELEASED_MS = 12_000

export async function codeFigures(): Promise<object> {
  const gateway = await startGateway(
    { everything: everythingEntry, held: { ...everythingEntry, approval: { '*': 'ask' } } },
    { args: ['--code'] }
  )
  const run = async (args: Record<string, unknown>) => {
    const { structuredContent } = await gateway.client.callTool(
      { name: 'run_code', arguments: args },
      { timeout: 100_000 }
    )
    return { ...(structuredContent as { status?: string; runId?: string }) }
  }
  try {
    await run({ code: 'await tools.everything.echo({ message: "x" })' })
    const start = await step('code: start on a warm sandbox', () => startFigures(run))
    const call = await step('code: an inner call against execute', () => callFigures(gateway, run))
    const replay = await step(`code: replay of ${CALLS} calls`, () => replayFigure(gateway, run))
    return { ...start, ...call, ...replay, ...(await threeWays()) }
  } finally {
    await gateway.end()
  }
}

type Run = (args: Record<string, unknown>) => Promise<{ status?: string; runId?: string }>

/** A program that makes one call and ends. The next sandbox gets ready meanwhile. */
async function startFigures(run: Run): Promise<object> {
  const times: number[] = []
  for (let n = 0; n < STARTS; n++) {
    await wait(3000)
    times.push(await timed(() => run({ code: 'await tools.everything.echo({ message: "x" })' })))
  }
  return { oneCallProgramMs: summary(times) }
}

/** In turns, so that other work on the machine slows both down. */
async function callFigures(gateway: GatewayProcess, run: Run): Promise<object> {
  const params = { message: 'x' }
  const code = `for (let n = 0; n < ${CALLS}; n++) await tools.everything.echo({ message: "x" })`
  const [direct, inner]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < TURNS; turn++) {
    direct.push(
      await timed(async () => {
        for (let n = 0; n < CALLS; n++) await gateway.call('execute', { server: 'everything', tool: 'echo', params })
      })
    )
    await wait(3000)
    inner.push(await timed(() => run({ code })))
  }
  const [execute, call] = [summary(direct).p50 / CALLS, summary(inner).p50 / CALLS]
  return { executeMs: round(execute), innerCallMs: round(call), ratio: round(call / execute) }
}

/** From the answer of a person to the end of the run, whose sandbox was given back: it needs a new one and makes one call. */
async function replayFigure(gateway: GatewayProcess, run: Run): Promise<object> {
  const code = `for (let n = 0; n < ${CALLS}; n++) await tools.everything.echo({ message: "x" })
await tools.held.echo({ message: "y" })`
  const { runId } = await run({ code })
  await wait(RELEASED_MS)
  const store = await openEmbeddedStore({
    dataDir: `${gateway.dir}/data`,
    deploymentId: undefined,
    logger: silentLogger
  })
  const inbox = new ApprovalInbox(store.keyValues)
  for (const { id, hash } of await inbox.open()) await inbox.answer(id, hash, { approved: true })
  await store.close()
  let status: string | undefined
  const ms = await timed(async () => {
    while (status !== 'completed') status = (await run({ runId })).status
  })
  return { replayAndOneCallMs: round(ms) }
}
