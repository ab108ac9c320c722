import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { openTestBucket, type TestBucket } from '../../support/object-service.ts'
import { productArgs } from '../../support/product.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'
import { discard, temporaryFolder } from '../../support/temporary-folder.ts'
import { testRedisEnv } from '../../support/test-redis.ts'

const run = promisify(execFile)
let bucket: TestBucket
let env: Record<string, string>
let a: Served
let b: Served

beforeAll(async () => {
  bucket = await openTestBucket()
})
afterAll(() => bucket.close())
beforeEach(async () => {
  bucket.open()
  env = { ...(await testRedisEnv()), ...bucket.env, CHECKPOINT_STORE: `${bucket.env.CHECKPOINT_STORE}/${randomUUID()}` }
  ;[a, b] = await Promise.all([serve(env), serve(env)])
})
afterEach(stopServers)

/** Runs `audit` on a machine with nothing of the instances. */
async function auditElsewhere(...words: string[]): Promise<Record<string, unknown>[]> {
  const dataDir = temporaryFolder()
  try {
    const args = [...productArgs('main'), 'audit', ...words, '--json']
    const { stdout } = await run(process.execPath, args, {
      cwd: dataDir,
      env: { PATH: process.env.PATH, HOME: dataDir, DATA_DIR: dataDir, ...env }
    })
    return stdout
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  } finally {
    discard(dataDir)
  }
}

const sessionsOf = (rows: Record<string, unknown>[]) => new Set(rows.map(({ session }) => session))

it('has the calls of both instances, also of one whose machine is gone', async () => {
  const ids = [`on-a-${randomUUID()}`, `on-b-${randomUUID()}`]
  const [onA, onB] = [a.connect(ids[0] ?? ''), b.connect(ids[1] ?? '')]
  await Promise.all([onA.ready(), onB.ready()])
  await onA.sh('echo one')
  await onB.sh('echo two')
  await eventually('the rows of both are in the bucket', async () => {
    const found = sessionsOf(await auditElsewhere())
    return ids.every((id) => found.has(id))
  })
  await a.kill9()
  rmSync(join(a.dataDir, 'audit'), { recursive: true, force: true })
  expect([...sessionsOf(await auditElsewhere())]).toEqual(expect.arrayContaining(ids))
  await b.stop()
  const chains = await auditElsewhere('verify')
  expect(chains.flatMap(({ problems }) => problems)).toEqual([])
  expect(chains.filter(({ state }) => state === 'intact').length).toBeGreaterThan(0)
})

it('goes on without the bucket for a while, and has every row when it is back', async () => {
  const id = `away-${randomUUID()}`
  const onA = a.connect(id)
  await onA.ready()
  await onA.sh('echo before')
  bucket.shut()
  expect(await onA.sh('echo during')).toContain('during')
  bucket.open()
  await onA.sh('echo after')
  await eventually('all rows are in the bucket', async () => {
    const calls = (await auditElsewhere()).filter(({ session, outcome }) => session === id && outcome === 'ok')
    return calls.length === 3
  })
})
