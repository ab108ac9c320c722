/** `/readyz` against a disk and a Redis that are really full. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { ownRedis } from '../support/own-redis.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  await stopServers()
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Ready {
  status: number
  body: Record<string, { ok: boolean; detail: string }> & { ok: boolean }
}

async function ready({ url }: Served, headers: Record<string, string> = {}): Promise<Ready> {
  const answer = await fetch(`${url}/readyz`, { headers })
  return { status: answer.status, body: (await answer.json()) as Ready['body'] }
}

const times = (log: string, words: string) => log.split(words).length - 1

// Checked: if the folder is not written to, the reason is another one. If the store is only read, its part stays ok. Without the
// threshold, it stays ready when the disk is nearly full.
it.skipIf(process.getuid?.() !== 0)(
  'says 503 while the disk is full or nearly so, once in the log, and recovers',
  async () => {
    const disk = temporaryFolder()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', disk])
    cleanUps.push(() => {
      execFileSync('umount', ['-l', disk])
      rmSync(disk, { recursive: true, force: true })
    })
    mkdirSync(join(disk, 'data'))
    const server = await serve({ MIN_FREE_MB: '5', LOG_LEVEL: 'info' }, { dataDir: join(disk, 'data') })
    const ballast = join(disk, 'ballast')
    execFileSync('sh', ['-c', `head -c 100M /dev/zero > '${ballast}' || true`], { stdio: 'ignore' })
    await eventually('it is not ready', async () => (await ready(server)).status === 503)
    const { body } = await ready(server)
    expect(body.ok).toBe(false)
    expect(body.disk?.detail).toMatch(/can't be written \(ENOSPC.*: free space there/)
    expect(body.store?.ok).toBe(false)
    const metrics = await (await fetch(`${server.url}/metrics`)).text()
    expect(metrics).toContain('mcp_orchestrator_not_ready_disk 1')
    expect(metrics).toContain('mcp_orchestrator_not_ready_store 1')
    rmSync(ballast)
    // Nearly full: every write succeeds, and the threshold says no.
    writeFileSync(ballast, Buffer.alloc(0))
    await eventually('it is ready', async () => (await ready(server)).status === 200)
    const free = Number(/(\d+) MB free/.exec((await ready(server)).body.disk?.detail ?? '')?.[1])
    writeFileSync(ballast, Buffer.alloc((free - 3) * 1024 * 1024, 1))
    await eventually('it is not ready', async () => (await ready(server)).status === 503)
    expect((await ready(server)).body).toMatchObject({ disk: { ok: false }, store: { ok: true } })
    expect((await ready(server)).body.disk?.detail).toMatch(/^Only \d MB are free .* MIN_FREE_MB is 5/)
    await expect.poll(() => times(server.log(), '"part":"disk"')).toBe(3)
  }
)

// Checked: if the store is only read, it stays ready with a full Redis.
it('says 503 while Redis takes no more writes, and recovers', async () => {
  const redis = await ownRedis()
  cleanUps.push(() => redis.kill())
  const server = await serve({ REDIS_URL: redis.url })
  const admin = new Redis(redis.url)
  cleanUps.push(() => admin.disconnect())
  await admin.config('SET', 'maxmemory-policy', 'noeviction')
  await admin.config('SET', 'maxmemory', '1mb')
  await eventually('it is not ready', async () => (await ready(server)).status === 503)
  expect((await ready(server)).body).toMatchObject({ ok: false, store: { ok: false }, disk: { ok: true } })
  await admin.config('SET', 'maxmemory', '0')
  await eventually('it is ready', async () => (await ready(server)).status === 200)
})

// Checked: if everyone gets the reasons, they are in the answer.
it('shows the reasons to token holders, or without a token to this machine only', async () => {
  const open = await serve()
  expect((await ready(open)).body).toMatchObject({ ok: true, store: { ok: true } })
  for (const header of ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via'])
    expect(await ready(open, { [header]: '192.0.2.1' })).toEqual({ status: 200, body: { ok: true } })
  expect(await asHost(open, 'evil.example')).toBe('{"ok":true}')
  const token = 'an access token of some length'
  const guarded = await serve({ AUTH_TOKEN: token })
  expect(await ready(guarded)).toEqual({ status: 200, body: { ok: true } })
  expect(await ready(guarded, { authorization: 'Bearer wrong' })).toEqual({ status: 200, body: { ok: true } })
  expect((await ready(guarded, { authorization: `Bearer ${token}` })).body).toMatchObject({ engine: { ok: true } })
})

function asHost({ port }: Served, host: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const asked = request({ port, host: '127.0.0.1', path: '/readyz', headers: { host } }, (answer) => {
    let text = ''
    answer.on('data', (chunk) => {
      text += chunk
    })
    answer.on('end', () => resolve(text))
  })
  asked.once('error', reject).end()
  return promise
}
