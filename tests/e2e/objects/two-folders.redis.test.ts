import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openEngine } from '../../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../../server/config/load-settings.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import type { SandboxEngine } from '../../../server/sandbox/port.ts'
import type { Client } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestBucket, type TestBucket } from '../../support/object-service.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'
import { testRedisEnv } from '../../support/test-redis.ts'

let bucket: TestBucket
let env: Record<string, string>
let a: Served
let b: Served
let engine: SandboxEngine

beforeAll(async () => {
  bucket = await openTestBucket()
  engine = await openEngine(loadSettings({ env: {} }), silentLogger)
})
afterAll(async () => {
  await engine.close()
  await bucket.close()
})
beforeEach(async () => {
  bucket.open()
  env = { ...(await testRedisEnv()), ...bucket.env, CHECKPOINT_STORE: `${bucket.env.CHECKPOINT_STORE}/${randomUUID()}` }
  ;[a, b] = await Promise.all([serve(env), serve(env)])
})
afterEach(stopServers)

async function tabs(): Promise<{ onA: Client; onB: Client }> {
  const id = `apart-${randomUUID()}`
  const onA = a.connect(id)
  const { token } = await onA.ready()
  await onA.snapshot()
  const onB = b.connect(id, { token })
  await onB.snapshot()
  return { onA, onB }
}

/** As if the machine with the containers had died. */
async function loseSandboxes(): Promise<void> {
  for (const { id } of await engine.list(a.deployment)) await engine.remove(id)
}

/** The output of the command, once the session is usable again. */
async function saidBy(tab: Client, command: string): Promise<string> {
  let said = ''
  await eventually(`the session runs ${command}`, async () => {
    said = await tab.sh(command).catch(() => '')
    return said !== ''
  })
  return said
}

describe('two instances that share a Redis and a bucket, and no folder', () => {
  it('restore the files of a session whose instance and sandbox died', async () => {
    const { onA, onB } = await tabs()
    expect(a.dataDir).not.toBe(b.dataDir)
    await onA.sh('mkdir d && echo one > d/one.txt && head -c 3000000 /dev/urandom > big && sha256sum big > sum')
    await a.kill9()
    await loseSandboxes()
    expect(await saidBy(onB, 'cat d/one.txt && sha256sum -c sum')).toMatch(/one\s+big: OK/)
    await onB.sh('echo two > d/two.txt')
    await loseSandboxes()
    expect(await saidBy(onB, 'ls d')).toMatch(/one\.txt\s+two\.txt/)
    expect(existsSync(join(b.dataDir, 'checkpoints'))).toBe(false)
    expect(readdirSync(join(b.dataDir, 'object-cache')).length).toBeGreaterThan(0)
  })

  it('continue while the bucket is away, say so, and save later what was not saved', async () => {
    const { onA, onB } = await tabs()
    await onA.sh('echo before > before.txt')
    bucket.shut()
    expect(await onA.sh('echo during > during.txt && cat during.txt')).toContain('during')
    const notice = await onA.wait('session:notice', ({ code }) => code === 'checkpoint_failed')
    expect(String(notice.message)).toMatch(/could not be saved: .*object store/)
    bucket.open()
    expect(await saidBy(onA, 'echo after > after.txt; ls')).toMatch(/after\.txt/)
    await a.kill9()
    await loseSandboxes()
    expect(await saidBy(onB, 'cat before.txt during.txt after.txt')).toMatch(/before\s+during\s+after/)
    await eventually('the instance is ready', async () => (await fetch(`${b.url}/readyz`)).ok)
  })

  it('an instance that was frozen neither overwrites the files nor misses changes', async () => {
    const { onA, onB } = await tabs()
    await onA.sh('echo from a > file.txt')
    a.child.kill('SIGSTOP')
    expect(await saidBy(onB, 'cat file.txt; echo from b > file.txt')).toContain('from a')
    await onB.sh('echo more > more.txt')
    a.child.kill('SIGCONT')
    expect(await saidBy(onA, 'cat file.txt more.txt')).toMatch(/from b\s+more/)
    await loseSandboxes()
    expect(await saidBy(onB, 'cat file.txt more.txt')).toMatch(/from b\s+more/)
  })

  it('refuse a bucket that belongs to another Redis', async () => {
    await expect(serve({ ...env, ...(await testRedisEnv()) })).rejects.toThrow('another session store')
  })
})
