/** The command itself, in every direction, also killed in the middle. On a service in memory and on a real one. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { productArgs, productEnv } from '../../../tests/support/product.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { testRedisEnv } from '../../../tests/support/test-redis.ts'
import { loadSettings } from '../../config/load-settings.ts'
import { silentLogger } from '../../lib/logger.ts'
import { FakeObjectService } from '../../storage/objects/fake-object-service.ts'
import { hasRealService, TEST_CREDENTIALS } from '../../storage/objects/fake-object-store.ts'
import { openStore } from '../open-store.ts'
import { contentOf, fill, picture } from './migrate.fixture.ts'

type Env = Record<string, string>

const SERVICES = [
  { name: 'in memory', onward: undefined },
  ...(hasRealService ? [{ name: 'real', onward: process.env.TEST_S3_ENDPOINT }] : [])
]

describe.each(SERVICES)('migrate, with a bucket $name', { timeout: 300_000 }, ({ onward }) => {
  let service: FakeObjectService
  let dir: string
  beforeEach(async () => {
    service = await new FakeObjectService(onward).start()
    dir = temporaryFolder()
  })
  afterEach(async () => {
    await service.stop()
    discard(dir)
  })

  const inFolder = (): Env => ({ DATA_DIR: join(dir, randomUUID()) })
  const inBucket = (): Env => ({
    ...inFolder(),
    CHECKPOINT_STORE: `s3://${process.env.TEST_S3_BUCKET ?? 'tests'}/${randomUUID()}`,
    S3_ENDPOINT: service.endpoint,
    AWS_ACCESS_KEY_ID: TEST_CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: TEST_CREDENTIALS.secretAccessKey
  })
  const settingsOf = (env: Env) => loadSettings({ env })

  /** Kills the command when it has sent this many requests to the bucket. */
  async function command(from: Env, to: Env, killAt = Number.POSITIVE_INFINITY) {
    const files = [from, to].map((env, at) => {
      const path = join(dir, `${at}-${randomUUID()}.env`)
      writeFileSync(
        path,
        Object.entries(env)
          .map(([name, value]) => `${name}=${value}\n`)
          .join('')
      )
      return path
    })
    const args = [...productArgs('main'), 'migrate', '--from', files[0] ?? '', '--to', files[1] ?? '']
    const child = spawn(process.execPath, args, {
      cwd: dir,
      env: { PATH: process.env.PATH, HOME: dir, ...productEnv() },
      stdio: ['ignore', 'ignore', 'pipe']
    })
    let said = ''
    child.stderr.on('data', (chunk) => {
      said += String(chunk)
    })
    let requests = 0
    service.fault = ({ method }) => {
      if (method !== 'PUT' || ++requests < killAt) return undefined
      child.kill('SIGKILL')
      return 'lost'
    }
    const [code, signal] = await once(child, 'close')
    service.fault = () => undefined
    return { code, signal, said }
  }

  it('moves in every direction without a difference, and leaves the source as it is', async () => {
    const places: [name: string, env: Env][] = [
      ['a folder and SQLite', inFolder()],
      ['a bucket, from a folder', inBucket()],
      ['Redis, from SQLite', { ...inBucket(), ...(await testRedisEnv()) }],
      ['a folder, from a bucket', { ...inFolder(), ...(await testRedisEnv()) }],
      ['SQLite, from Redis', inFolder()]
    ]
    const first = settingsOf(places[0]?.[1] ?? {})
    await fill(first)
    const expected = await contentOf(first)
    for (const [at, [name, to]] of places.entries()) {
      const from = places[at - 1]?.[1]
      if (!from) continue
      const before = picture(from.DATA_DIR ?? '')
      expect(await command(from, to), name).toMatchObject({ code: 0 })
      expect(picture(from.DATA_DIR ?? ''), name).toEqual(before)
      expect(await contentOf(settingsOf(to)), name).toEqual(expected)
      expect(await contentOf(settingsOf(from)), name).toEqual(expected)
    }
  })

  it('killed in the middle, is not served, and is complete when it is repeated', async () => {
    const [from, to] = [inFolder(), { ...inBucket(), ...(await testRedisEnv()) }]
    await fill(settingsOf(from))
    const before = picture(from.DATA_DIR ?? '')
    for (const killAt of [1, 4, 8]) {
      expect(await command(from, to, killAt)).toMatchObject({ signal: 'SIGKILL' })
      await expect(openStore(settingsOf(to), silentLogger)).rejects.toMatchObject({ code: 'restore_unfinished' })
      expect(picture(from.DATA_DIR ?? '')).toEqual(before)
    }
    expect(await command(from, to)).toMatchObject({ code: 0 })
    expect(picture(from.DATA_DIR ?? '')).toEqual(before)
    expect(await contentOf(settingsOf(to))).toEqual(await contentOf(settingsOf(from)))
  })
})
