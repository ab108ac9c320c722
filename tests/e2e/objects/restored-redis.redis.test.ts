import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterEach, expect, it } from 'vitest'
import { openTestBucket } from '../../support/object-service.ts'
import { ownRedis } from '../../support/own-redis.ts'
import { productArgs } from '../../support/product.ts'
import { serve, stopServers } from '../../support/serve.ts'
import { discard, temporaryFolder } from '../../support/temporary-folder.ts'

const run = promisify(execFile)
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  await stopServers()
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

// Seen to fail: nobody said that the bucket must be accepted, and the message spoke of an emptied store only.
it('has its files again when Redis was emptied and restored from a backup', async () => {
  const dir = temporaryFolder()
  const [redis, bucket] = [await ownRedis(), await openTestBucket()]
  cleanUps.push(
    () => redis.kill(),
    () => bucket.close(),
    () => discard(dir)
  )
  const env = { REDIS_URL: redis.url, ...bucket.env }
  const cli = async (...args: string[]) => {
    const options = { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, ...env } }
    return (await run(process.execPath, [...productArgs('main'), ...args], options)).stderr
  }
  const server = await serve(env)
  const sessionId = `test-${randomUUID()}`
  const client = server.connect(sessionId)
  const { token } = await client.ready()
  await client.sh('echo saved > a.txt')
  const backup = join(dir, 'backup')
  expect(await cli('backup', '--to', backup, '--data-dir', server.dataDir)).toContain('Copy the bucket too')
  await client.sh('echo later > b.txt')
  await server.stop()
  const admin = new Redis(redis.url)
  await admin.flushall()
  await admin.quit()
  const dataDir = join(dir, 'data')
  expect(await cli('restore', backup, '--data-dir', dataDir)).toContain('serve --accept-data-dir')
  await expect(serve(env, { dataDir })).rejects.toThrow('restored from a backup')
  const again = await serve(env, { dataDir, flags: ['--accept-data-dir'] })
  const tab = again.connect(sessionId, { token })
  const said = await tab.sh('cat a.txt b.txt')
  expect(said).toContain('saved')
  expect(said).not.toContain('later')
})
