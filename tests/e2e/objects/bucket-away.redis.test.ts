/** The bucket is away for a minute, in both ways in which a service can be away. Two instances work on two folders meanwhile. */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { openEngine } from '../../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../../server/config/load-settings.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import type { SandboxEngine } from '../../../server/sandbox/port.ts'
import type { Client } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestBucket, type TestBucket } from '../../support/object-service.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'
import { testRedisEnv } from '../../support/test-redis.ts'

const AWAY_MS = 60_000
/** Time for one call: its command, and one attempt to save its files. */
const CALL_MS = 45_000

let bucket: TestBucket
let engine: SandboxEngine
let env: Record<string, string>
let a: Served
let b: Served

beforeAll(async () => {
  bucket = await openTestBucket()
  engine = await openEngine(loadSettings({ env: {} }), silentLogger)
})
afterAll(async () => {
  await engine.close()
  await bucket.close()
})
beforeEach(async () => {
  env = { ...(await testRedisEnv()), ...bucket.env, CHECKPOINT_STORE: `${bucket.env.CHECKPOINT_STORE}/${randomUUID()}` }
  ;[a, b] = await Promise.all([serve(env), serve(env)])
})
afterEach(async () => {
  bucket.open()
  await stopServers()
})

interface Person {
  id: string
  token: string | undefined
  tab: Client
  /** The numbers that this person's commands have put into the file. */
  written: number[]
}

async function enter(server: Served): Promise<Person> {
  const id = `away-${randomUUID()}`
  const tab = server.connect(id)
  const { token } = await tab.ready()
  await tab.sh('echo begun > begun.txt')
  return { id, token, tab, written: [] }
}

/** Appends numbers to a file, one call after the other. Each is answered in time. */
async function work({ tab, written }: Person, until: number): Promise<void> {
  while (performance.now() < until) {
    const n = written.length
    const began = performance.now()
    expect(await tab.sh(`echo ${n} >> numbers.txt; tail -n 1 numbers.txt`)).toContain(String(n))
    expect(performance.now() - began).toBeLessThan(CALL_MS)
    written.push(n)
  }
}

async function loseSandboxes(): Promise<void> {
  for (const { id } of await engine.list(a.deployment)) await engine.remove(id)
}

async function readiness(server: Served): Promise<{ status: number; detail: string; ms: number }> {
  const began = performance.now()
  const answer = await fetch(`${server.url}/readyz`)
  const { checkpoints } = (await answer.json()) as { checkpoints: { detail: string } }
  return { status: answer.status, detail: checkpoints.detail, ms: performance.now() - began }
}

const WAYS = {
  'refuses connections': () => bucket.shut(),
  'accepts connections and answers nothing': () => bucket.silence()
}

it.each(Object.entries(WAYS))(
  'a bucket that %s for a minute stops no work and loses nothing',
  { timeout: 400_000 },
  async (_, takeAway) => {
    const people = await Promise.all([enter(a), enter(a), enter(b)])
    takeAway()
    const until = performance.now() + AWAY_MS
    const working = Promise.all(people.map((person) => work(person, until)))
    working.catch(() => {})
    await eventually('both say so', async () => {
      const said = await Promise.all([readiness(a), readiness(b)])
      return said.every(({ status, detail }) => status === 503 && detail.includes('object store'))
    })
    await working
    for (const { tab } of people) {
      const notices = tab.all('session:notice').filter(({ code }) => code === 'checkpoint_failed')
      expect(String(notices[0]?.message)).toMatch(/could not be saved: .*object store/)
    }
    for (const server of [a, b]) {
      const metrics = await (await fetch(`${server.url}/metrics`)).text()
      expect(metrics).toMatch(/mcp_orchestrator_store_errors_total\{[^}]*part="objects"[^}]*\} [1-9]/)
      expect(metrics).toMatch(/mcp_orchestrator_not_ready_checkpoints 1/)
      expect(server.log()).toMatch(/object store did not/)
    }
    bucket.open()
    await eventually('both are ready', async () => {
      return (await Promise.all([readiness(a), readiness(b)])).every(({ status }) => status === 200)
    })
    for (const { tab } of people) await tab.sh('echo back > back.txt')
    await Promise.all([a.kill9(), b.kill9()])
    await loseSandboxes()
    const c = await serve(env)
    for (const { id, token, written } of people) {
      expect(written.length).toBeGreaterThan(0)
      const tab = c.connect(id, { token })
      await tab.snapshot()
      const said = await tab.sh('cat begun.txt numbers.txt back.txt')
      expect(said.split(/\s+/)).toEqual(expect.arrayContaining(['begun', ...written.map(String), 'back']))
    }
  }
)
