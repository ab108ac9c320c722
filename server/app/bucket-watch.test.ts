import { afterEach, expect, it } from 'vitest'
import { claimBucket } from '../storage/object-checkpoints/claim-bucket.ts'
import type { Bucket } from '../storage/object-checkpoints/open-bucket.ts'
import { FakeObjectService, type FakeRequest } from '../storage/objects/fake-object-service.ts'
import { S3ObjectStore } from '../storage/objects/s3-object-store.ts'
import type { SessionStore } from '../storage/session-store.ts'
import type { Store } from '../storage/store.ts'
import { BucketWatch } from './bucket-watch.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A watch of the real client on a service that can misbehave. */
async function open(store = { deployment: 'd', origin: 'o' }) {
  const service = await new FakeObjectService().start()
  const watch = new BucketWatch()
  const report = watch.before()
  const objects = new S3ObjectStore({
    ...{ bucket: 'b', endpoint: service.endpoint, region: 'r', isPathStyle: true },
    credentials: { accessKeyId: 'a', secretAccessKey: 's' },
    report: (operation) => report('objects', operation)
  })
  const sessions = {
    deploymentId: async () => store.deployment,
    origin: async () => ({ id: store.origin, at: 0 })
  } as SessionStore
  const claim: Bucket['claim'] = (mine, isAccepted) => claimBucket(objects, 'p/', mine.sessions, isAccepted)
  await claim({ sessions }, false)
  watch.watch({ objects, prefix: 'p/', claim }, { sessions })
  watch.start()
  closing.push(
    () => watch.stop(),
    () => objects.close(),
    () => service.stop()
  )
  return { service, watch, objects }
}
const reasonOf = (watch: BucketWatch) => watch.check().catch((error: Error) => error.message)

// Seen to fail when the check waited for the bucket: it answered after eight seconds, and named no reason.
it('says at once why the bucket can not be used, and that it can again within seconds', async () => {
  const { service, watch } = await open()
  await expect.poll(() => service.requests.length).toBeGreaterThan(0)
  expect(await watch.check()).toBe('saved')
  service.fault = () => 'cut'
  await expect.poll(() => reasonOf(watch)).toMatch(/socket hang up|ECONNRESET/)
  service.fault = () => undefined
  await expect.poll(() => reasonOf(watch)).toBe('saved')
})

it('names a refused connection', async () => {
  const { service, watch, objects } = await open()
  await service.stop()
  closing.pop()
  await objects.probe().catch(() => {})
  await expect.poll(() => reasonOf(watch)).toContain('ECONNREFUSED')
})

it('once a request has failed, a bucket that can be read but not written does not count as usable', async () => {
  const { service, watch, objects } = await open()
  const isWrite = ({ method }: FakeRequest) => method === 'PUT'
  service.fault = (request) => (isWrite(request) ? 'forbidden' : undefined)
  await expect(objects.create('p/x', Buffer.from('x'))).rejects.toMatchObject({ code: 'objects_refused' })
  await expect.poll(() => reasonOf(watch)).toContain('AccessDenied')
  service.fault = () => undefined
  await expect.poll(() => reasonOf(watch)).toBe('saved')
  expect(service.keys()).toContain('p/write-probe')
})

// Seen to fail while the owner was only checked at startup: the new session's files were put beside the lost ones.
it('takes no new session and is not ready after the store was emptied, until the operator confirms it', async () => {
  const store = { deployment: 'd', origin: 'before' }
  const { watch, objects } = await open(store)
  await watch.checkOwner()
  store.origin = 'after'
  await expect(watch.checkOwner()).rejects.toMatchObject({ kind: 'unavailable', code: 'wrong_bucket' })
  await expect(watch.checkOwner()).rejects.not.toThrow('CHECKPOINT_STORE')
  await expect.poll(() => reasonOf(watch)).toContain('this one was emptied')
  const mine = { deploymentId: async () => 'd', origin: async () => ({ id: 'after', at: 0 }) }
  await claimBucket(objects, 'p/', mine, true)
  await watch.checkOwner()
  await expect.poll(() => reasonOf(watch)).toBe('saved')
})

it('answers from its last look while a look hangs', async () => {
  const watch = new BucketWatch()
  const never = () => new Promise<never>(() => {})
  watch.watch({ objects: { probe: never, put: never }, prefix: '', claim: never }, {} as Store)
  watch.start()
  closing.push(() => watch.stop())
  expect(await watch.check()).toBe('saved')
})
