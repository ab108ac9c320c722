/**
 * Forks from the person's side, on a whole server with the demo model: how long one takes with an empty, a small and a large workspace,
 * and what a previewed call costs against a plain one in the same run.
 */
import { randomUUID } from 'node:crypto'
import type { Client } from '../tests/support/client.ts'
import { type Served, serve, stopServers } from '../tests/support/serve.ts'
import { NO_LIMITS } from './no-limits.ts'
import { round, step, summary, timed } from './statistics.ts'

const ROUNDS = 10
const WORKSPACES = {
  empty: 'true',
  files100: 'mkdir -p d; for i in $(seq 100); do head -c 1000 /dev/urandom > d/$i; done',
  files10000Of100Mb:
    'for d in $(seq 100); do mkdir -p d$d; head -c 1048576 /dev/urandom | split -b 10486 -a 3 - d$d/f; done'
}

export async function forkFigures(): Promise<object> {
  try {
    const env = { ...NO_LIMITS, WARM_POOL_SIZE: '2', LOG_LEVEL: 'info' }
    const server = await serve(env)
    const figures: Record<string, object> = {}
    for (const [name, fill] of Object.entries(WORKSPACES))
      figures[name] = await step(`forks: ${name}`, () =>
        measure(server, fill, name === 'files10000Of100Mb' ? 3 : ROUNDS)
      )
    return figures
  } finally {
    await stopServers()
  }
}

async function measure(server: Served, fill: string, rounds: number): Promise<object> {
  const client = server.connect(`bench-${randomUUID()}`)
  await client.snapshot()
  await client.sh(fill)
  const plain: number[] = []
  const previewed: number[] = []
  const card: number[] = []
  const from = server.log().length
  for (let at = 0; at < rounds; at++) {
    await client.ask('mode:select', { mode: 'ask' })
    plain.push(await timed(() => client.sh(`echo ${at} > plain.txt`)))
    await client.ask('mode:select', { mode: 'preview' })
    const { total, toCard } = await previewedCall(client, `echo ${at} > preview.txt; date +%s%N`)
    previewed.push(total)
    card.push(toCard)
  }
  client.close()
  const opened = [
    ...server
      .log()
      .slice(from)
      .matchAll(/"ms":(\d+),"msg":"Fork opened\."/g)
  ].map(([, ms]) => Number(ms))
  const figures = { forkReadyMs: summary(opened), plainMs: summary(plain), previewedMs: summary(previewed) }
  const fork = figures.forkReadyMs.p50
  return {
    ...figures,
    endOfCommandToCardMs: summary(card),
    ratioWithoutFork: round((figures.previewedMs.p50 - (Number.isNaN(fork) ? 0 : fork)) / figures.plainMs.p50)
  }
}

/** From the message to the end of the turn, kept at once. The command prints when it ends; container and client share one clock. */
async function previewedCall(client: Client, command: string): Promise<{ total: number; toCard: number }> {
  const from = client.seen.length
  const start = performance.now()
  await client.ask('message', `run ${command}`)
  const { callId, hash, result } = await client.wait('tool:previewed', undefined, { from })
  const shown = performance.timeOrigin + performance.now()
  const ended = Number(/\d{19}/.exec(JSON.stringify(result))?.[0]) / 1e6
  await client.ask('tool:approval', { callId, hash, approved: true })
  await client.wait('turn:end', undefined, { from })
  return { total: performance.now() - start, toCard: shown - ended }
}
