import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { type OwnRedis, ownRedis } from '../support/own-redis.ts'
import { productArgs } from '../support/product.ts'
import { serve, stopServers } from '../support/serve.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)
const redises: OwnRedis[] = []
let dir = ''

beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(async () => {
  await stopServers()
  for (const redis of redises.splice(0)) await redis.kill()
  discard(dir)
})

async function cli(args: string[], env: Record<string, string>): Promise<{ code: number; said: string }> {
  const options = { cwd: dir, env: { PATH: process.env.PATH, ...env } }
  return run(process.execPath, [...productArgs('main'), ...args], options).then(
    ({ stderr }) => ({ code: 0, said: stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, said: stderr })
  )
}

async function storeEnv(kind: string): Promise<Record<string, string>> {
  if (kind === 'embedded') return {}
  const redis = await ownRedis()
  redises.push(redis)
  return { REDIS_URL: redis.url }
}

describe.each(['embedded', 'redis'])('a backup of the %s store', (kind) => {
  it('is made during writes; restored elsewhere, conversations and files are there, and the original goes on', async () => {
    const env = await storeEnv(kind)
    const server = await serve({ ...env, MESSAGES_PER_MINUTE: '10000', COMMANDS_PER_MINUTE: '10000' })
    const sessionId = `test-${randomUUID()}`
    const client = server.connect(sessionId)
    const { token } = await client.ready()
    expect(await client.sh('echo kept > a.txt; cat a.txt')).toContain('kept')
    let isDone = false
    const writing = (async () => {
      for (let i = 0; !isDone; i++) await client.sh(`echo ${i} > b${i % 5}.txt`)
    })()
    const to = join(dir, 'backup')
    const made = await cli(['backup', '--to', to, '--data-dir', server.dataDir], env)
    isDone = true
    await writing
    expect(made).toMatchObject({ code: 0, said: expect.stringContaining('restore') })
    expect(statSync(to).mode & 0o077).toBe(0)
    for (const name of readdirSync(to, { recursive: true, encoding: 'utf8' })) {
      expect(statSync(join(to, name)).mode & 0o077).toBe(0)
    }

    const nextEnv = await storeEnv(kind)
    const dataDir = join(dir, 'data')
    expect(await cli(['restore', to, '--data-dir', dataDir], nextEnv)).toMatchObject({ code: 0 })
    expect(await cli(['restore', to, '--data-dir', dataDir], nextEnv)).toMatchObject({
      code: 1,
      said: expect.stringMatching(/is not empty|has data of the deployment/)
    })
    const restored = await serve(nextEnv, { dataDir })
    expect(restored.deployment).not.toBe(server.deployment)
    const again = restored.connect(sessionId, { token })
    const { transcript } = await again.snapshot()
    expect(JSON.stringify(transcript.entries)).toContain('echo kept')
    // The copy was made in the middle of a turn, which goes on here: it is stopped, if it has not ended yet.
    await again.ask('turn:cancel')
    await eventually('the files are there', async () => /kept\s+\d/.test(await again.sh('cat a.txt b0.txt')))
    expect(await client.sh('cat a.txt')).toContain('kept')
  })
})

it('is refused when a file is missing or changed, or when it is of another store', async () => {
  const server = await serve()
  const to = join(dir, 'backup')
  expect(await cli(['backup', '--to', to, '--data-dir', server.dataDir], {})).toMatchObject({ code: 0 })
  const restore = (env: Record<string, string> = {}) => cli(['restore', to, '--data-dir', join(dir, 'data')], env)
  expect((await restore({ REDIS_URL: 'redis://127.0.0.1:1' })).said).toContain('unset REDIS_URL')
  appendFileSync(join(to, 'store.db'), 'x')
  expect((await restore()).said).toMatch(/store\.db has changed/)
  const manifest = readFileSync(join(to, 'manifest.json'), 'utf8')
  expect(manifest).not.toContain(server.dataDir)
  rmSync(join(to, 'store.db'))
  expect(await restore()).toMatchObject({ code: 2, said: expect.stringContaining("can't be used") })
})

it('is refused, and doctor fails, with a data folder that is not the one of the deployment in Redis', async () => {
  const env = await storeEnv('redis')
  const server = await serve(env)
  const client = server.connect(`test-${randomUUID()}`)
  await client.ready()
  await client.sh('echo kept > a.txt')
  const to = join(dir, 'backup')
  mkdirSync(join(dir, 'empty'))
  for (const wrong of [join(dir, 'not-there'), join(dir, 'empty')]) {
    expect(await cli(['backup', '--to', to, '--data-dir', wrong], env)).toMatchObject({
      code: 1,
      said: expect.stringMatching(/data folder.*--data-dir/)
    })
    expect(readdirSync(dir)).not.toContain('backup')
    const { stdout } = await run(process.execPath, [...productArgs('main'), 'doctor', '--data-dir', wrong], {
      cwd: dir,
      env: { PATH: process.env.PATH, ...env }
    }).catch((error) => error)
    expect(stdout).toMatch(/FAILS\s+store\s.*another data folder/)
  }
  const { stdout } = await run(process.execPath, [...productArgs('main'), 'doctor', '--data-dir', server.dataDir], {
    cwd: dir,
    env: { PATH: process.env.PATH, ...env }
  }).catch((error) => error)
  // The Redis of this test keeps nothing on disk.
  expect(stdout).toMatch(/warn\s+store\s.*appendonly yes/)
})
