/**
 * Forks from the person's side, on a whole server with the demo model: how long a new one takes with an empty, a small and a large
 * workspace, and what a previewed call, keeping it and undoing it cost against a plain call in the same run.
 */
import { randomUUID } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import type { RevertPlanReply } from '../contract/effects/effect-replies.ts'
import type { Client } from '../tests/support/client.ts'
import { eventually } from '../tests/support/eventually.ts'
import { type Served, serve, stopServers } from '../tests/support/serve.ts'
import { NO_LIMITS } from './no-limits.ts'
import { round, step, summary, timed } from './statistics.ts'

const POOL = 2
const WORKSPACES = {
  empty: 'true',
  files100: 'mkdir -p d; for i in $(seq 100); do head -c 1000 /dev/urandom > d/$i; done',
  files10000Of100Mb:
    'for d in $(seq 100); do mkdir -p d$d; head -c 1048576 /dev/urandom | split -b 10486 -a 3 - d$d/f; done'
}

interface Previewed {
  total: number
  /** From the end of the command to its card. */
  toCard: number
  /** From the person's answer to the result. */
  keep: number
  changeId: string
}

export async function forkFigures(): Promise<object> {
  try {
    const server = await serve({ ...NO_LIMITS, WARM_POOL_SIZE: String(POOL), LOG_LEVEL: 'info' })
    const log = forkLog(server)
    const figures: Record<string, object> = {}
    for (const [name, fill] of Object.entries(WORKSPACES))
      figures[name] = await step(`forks: ${name}`, () =>
        measure(server, log, fill, name === 'files10000Of100Mb' ? 5 : 10)
      )
    return { loadAverage: round(loadavg()[0] ?? 0), ...figures }
  } finally {
    await stopServers()
  }
}

async function measure(server: Served, log: ForkLog, fill: string, rounds: number): Promise<object> {
  const asked = await filled(server, fill)
  const ahead = await filled(server, fill)
  await ahead.ask('mode:select', { mode: 'preview' })
  log('Fork opened.') // those of the workspace before don't count
  const first = await newForks(server, ahead, rounds)
  const forkReadyMs = summary(log('Fork opened.'))
  // From here on there is a fork.
  await previewed(ahead, 'echo kept > file.txt')
  const plain: number[] = []
  const kept: Previewed[] = []
  const before = storedBytes(server)
  for (let at = 0; at < 2 * rounds; at++) {
    plain.push(await timed(() => asked.sh(`echo ${at} > file.txt; date +%s%N`)))
    kept.push(await previewed(ahead, `echo ${at} > file.txt`))
  }
  const bytes = storedBytes(server) - before
  const undone = await undoEach(server, ahead, rounds)
  for (const client of [asked, ahead]) client.close()
  const [plainMs, previewedMs, withNewForkMs] = [plain, kept.map(total), first.map(total)].map(summary)
  const per = plainMs?.p50 ?? Number.NaN
  return {
    forkReadyMs,
    forkBroughtUpToDateMs: summary(log('Fork brought up to date.')),
    ...{ plainMs, previewedMs, withNewForkMs },
    ratio: round((previewedMs?.p50 ?? Number.NaN) / per),
    ratioWithNewForkLessItsTime: round(((withNewForkMs?.p50 ?? Number.NaN) - forkReadyMs.p50) / per),
    endOfCommandToCardMs: summary(kept.map(({ toCard }) => toCard)),
    endOfFirstCommandToCardMs: summary(first.map(({ toCard }) => toCard)),
    keepOneFileMs: summary(kept.map(({ keep }) => keep)),
    undoOneFileMs: summary(undone),
    // Both sessions store one version in each round, and the previewed one an open change set before that.
    bytesPerVersion: Math.round(bytes / (4 * rounds))
  }
}

const total = (call: Previewed) => call.total

async function filled(server: Served, fill: string): Promise<Client> {
  const client = server.connect(`bench-${randomUUID()}`)
  await client.snapshot()
  await client.sh(fill)
  return client
}

/** Calls in a new fork each: the one before was discarded, and the pool is full again. */
async function newForks(server: Served, client: Client, rounds: number): Promise<Previewed[]> {
  const calls: Previewed[] = []
  for (let at = 0; at < rounds; at++) {
    await eventually('the pool is full', () => isFull(server), 60_000)
    calls.push(await previewed(client, `echo new ${at} > file.txt`))
    await previewed(client, 'echo discarded > file.txt', false)
  }
  return calls
}

async function isFull(server: Served): Promise<boolean> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  return new RegExp(`warm_sandboxes(?:{[^}]*})? ${POOL}$`, 'm').test(metrics)
}

/** Each undoes a kept change, so the next preview finds a fork that is behind the workspace. */
async function undoEach({ url }: Served, client: Client, rounds: number): Promise<number[]> {
  const { sessionId, token = '' } = await client.ready()
  const undone: number[] = []
  for (let at = 0; at < rounds; at++) {
    const { changeId } = await previewed(client, `echo undone ${at} > file.txt`)
    const path = `/api/sessions/${sessionId}/changes/${encodeURIComponent(changeId)}/revert?scope=one`
    const plan = await fetch(`${url}${path}`, { headers: { 'x-session-token': token } })
    const { hash } = (await plan.json()) as RevertPlanReply
    const start = performance.now()
    const ack = await client.ask('files:revert', { changeId, scope: 'one', hash })
    undone.push(performance.now() - start)
    if (!ack.ok) throw new Error(`${ack.error.code}: ${ack.error.message}`)
  }
  return undone
}

/** From the message to the end of the turn, decided at once. The command prints when it ends; container and client share one clock. */
async function previewed(client: Client, command: string, approved = true): Promise<Previewed> {
  const from = client.seen.length
  const start = performance.now()
  await client.ask('message', `run ${command}; date +%s%N`)
  const { callId, hash, result } = await client.wait('tool:previewed', undefined, { from })
  const shown = performance.now()
  const ended = Number(/\d{19}/.exec(JSON.stringify(result))?.[0]) / 1e6 - performance.timeOrigin
  await client.ask('tool:approval', { callId, hash, approved })
  const { changes } = await client.wait(approved ? 'tool:result' : 'turn:end', undefined, { from })
  const keep = performance.now() - shown
  await client.wait('turn:end', undefined, { from })
  const { changeId = '' } = (changes ?? {}) as { changeId?: string }
  return { total: performance.now() - start, toCard: shown - ended, keep, changeId }
}

/** Takes from the server's log how long forks took since the last look. */
type ForkLog = (message: string) => number[]

function forkLog({ child }: Served): ForkLog {
  const seen: { message: string; ms: number }[] = []
  let rest = ''
  child.stderr?.on('data', (chunk) => {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, ms, message] = /"ms":(\d+).*"msg":"(Fork [^"]*)"/.exec(line) ?? []
      if (message !== undefined) seen.push({ message, ms: Number(ms) })
    }
  })
  return (message) => {
    const times = seen.filter((each) => each.message === message).map(({ ms }) => ms)
    seen.splice(0, seen.length, ...seen.filter((each) => each.message !== message))
    return times
  }
}

function storedBytes({ dataDir }: Served): number {
  const folder = join(dataDir, 'checkpoints')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return names
    .map((name) => statSync(join(folder, name)))
    .reduce((sum, info) => sum + (info.isFile() ? info.size : 0), 0)
}
