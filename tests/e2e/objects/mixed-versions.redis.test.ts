import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packageRoot } from '../../../server/lib/files/package-root.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import { openRedisStore } from '../../../server/storage/redis/open-redis-store.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestBucket, type TestBucket } from '../../support/object-service.ts'
import { serve, stopServers } from '../../support/serve.ts'
import { discard, temporaryFolder } from '../../support/temporary-folder.ts'
import { testRedisEnv } from '../../support/test-redis.ts'

const git = (...args: string[]): SpawnSyncReturns<string> =>
  spawnSync('git', args, { cwd: packageRoot(), encoding: 'utf8' })

/** The last version that announces no format: the one before the file was added. Undefined without the history. */
function previousVersion(): string | undefined {
  const added = git('log', '--diff-filter=A', '--format=%H', '--', 'server/storage/format/store-format.ts').stdout
  const [commit] = (added ?? '').trim().split('\n').toReversed()
  const found = commit ? git('rev-parse', '--verify', `${commit}^`) : undefined
  return found?.status === 0 ? found.stdout.trim() : undefined
}

const previous = previousVersion()
if (!previous) process.stderr.write('Skipped the test with the previous version: its source is not in the history.\n')
let bucket: TestBucket
let program: string

beforeAll(async () => {
  bucket = await openTestBucket()
  program = temporaryFolder()
  if (!previous) return
  const archive = execFileSync('git', ['archive', previous], { cwd: packageRoot(), maxBuffer: 1e9 })
  execFileSync('tar', ['-x', '-C', program], { input: archive })
  symlinkSync(join(packageRoot(), 'node_modules'), join(program, 'node_modules'))
  const built = join(packageRoot(), 'dist')
  if (existsSync(built)) cpSync(built, join(program, 'dist'), { recursive: true })
})
afterAll(async () => {
  await stopServers()
  await bucket.close()
  discard(program)
})

it.runIf(previous)('works beside the previous version, and writes what is new when that is gone', async () => {
  const redis = await testRedisEnv()
  const env = { ...redis, ...bucket.env, SECRETS_KEY: 'a key with enough characters' }
  const old = await serve(env, { program: join(program, 'server/main.ts') })
  const id = `mixed-${randomUUID()}`
  const onOld = old.connect(id)
  const { token } = await onOld.ready()
  await onOld.sh('echo from the old one > file.txt')
  const fresh = await serve(env)
  const onFresh = fresh.connect(id, { token })
  await onFresh.snapshot()
  expect(await onFresh.sh('cat file.txt; echo from the new one > file.txt')).toContain('from the old one')
  await eventually('the old one has it again', async () => {
    return (await onOld.sh('cat file.txt').catch(() => '')).includes('from the new one')
  })
  const store = await openRedisStore({ url: redis.REDIS_URL, deployment: redis.DEPLOYMENT, logger: silentLogger })
  const written = () => store.keyValues.get('store-format', '*written')
  try {
    await fetch(`${fresh.url}/mcp`, { method: 'POST', ...listTools() })
    expect(await written()).toBeNull()
    await old.stop()
    await eventually('what is new is written', async () => (await written()) === 1)
    expect(await onFresh.sh('cat file.txt')).toContain('from the new one')
  } finally {
    await store.close()
  }
})

/** The first call opens the logins. */
function listTools() {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const params = { name: 'list_capabilities', arguments: {} }
  return { headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) }
}
