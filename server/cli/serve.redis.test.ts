import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { testRedisEnv } from '../../tests/support/test-redis.ts'
import { silentLogger } from '../lib/logger.ts'
import { openRedisStore } from '../storage/redis/open-redis-store.ts'

const run = promisify(execFile)
const main = join(import.meta.dirname, '../main.ts')
const folders: string[] = []

afterEach(() => folders.splice(0).forEach(discard))

/** If it does not end by itself, it is killed and has no exit code. */
async function failingServe(cwd: string, env: Record<string, string>) {
  const redis = await testRedisEnv()
  const given = {
    PATH: process.env.PATH,
    TMPDIR: process.env.TMPDIR,
    DOCKER_HOST: `unix://${cwd}/none.sock`,
    PORT: '0',
    ...env
  }
  const options = { cwd, env: { ...redis, ...given }, timeout: 30_000 }
  const killed = { ...options, killSignal: 'SIGKILL' } as const
  const ended = run(process.execPath, ['--disable-warning=ExperimentalWarning', main, 'serve'], killed)
  return ended.then(
    () => ({ code: 0, stderr: '' }),
    ({ code, stderr }: { code: number | null; stderr: string }) => ({ code, stderr })
  )
}

function folder(): string {
  const dir = temporaryFolder()
  folders.push(dir)
  return dir
}

describe('a server on Redis that can not start', () => {
  it('ends, although its connection to Redis is open', async () => {
    const dir = folder()
    writeFileSync(join(dir, 'mcp.json'), '{ "mcpServers": {')
    const { code, stderr } = await failingServe(dir, {})
    expect(JSON.parse(stderr).msg).toMatch(/mcp\.json, line 1\b/)
    expect(code).toBe(2)
  })

  it("names the right folder if its DATA_DIR is not the deployment's", async () => {
    const redis = await testRedisEnv()
    const { REDIS_URL: url, DEPLOYMENT: deployment } = redis
    const store = await openRedisStore({ url, deployment, logger: silentLogger })
    await store.sessions.deploymentId()
    await store.sessions.heartbeat('another instance', 600_000)
    await store.close()
    const { code, stderr } = await failingServe(folder(), redis)
    expect(stderr).toMatch(/Other instances are running on this Redis.*Set DATA_DIR to the folder.*--accept-data-dir/)
    expect(code).toBe(1)
  })

  it('says why, even if its live channel is cut off before it is open', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const { code, stderr } = await failingServe(folder(), { PORT: String(port) })
    taken.close()
    expect(JSON.parse(stderr).msg).toBe(`Port ${port} is in use: stop what uses it, or set PORT to another one.`)
    expect(code).toBe(1)
  })

  it.each([
    [{ HOST: '192.0.2.1', AUTH_TOKEN: '0123456789abcdef' }, /of 192\.0\.2\.1 \(.*\): set HOST to an address/],
    [{ HOST: 'no.such.host.invalid', AUTH_TOKEN: '0123456789abcdef' }, /\): set HOST to an address/]
  ])('says in one sentence where it can not listen: %j', async (env, sentence) => {
    const { code, stderr } = await failingServe(folder(), env)
    expect(stderr).toMatch(sentence)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(code).toBe(1)
  })
})
