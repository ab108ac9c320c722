import { afterEach, expect, it } from 'vitest'
import { AppError } from '../lib/errors.ts'
import { FakeObjectService, type FakeRequest } from '../storage/objects/fake-object-service.ts'
import { S3ObjectStore } from '../storage/objects/s3-object-store.ts'
import { BucketWatch } from './bucket-watch.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A watch of the real client on a service that can misbehave. */
async function open(check = async () => {}) {
  const service = await new FakeObjectService().start()
  const watch = new BucketWatch()
  const report = watch.before()
  const objects = new S3ObjectStore({
    ...{ bucket: 'b', endpoint: service.endpoint, region: 'r', isPathStyle: true },
    credentials: { accessKeyId: 'a', secretAccessKey: 's' },
    report: (operation) => report('objects', operation)
  })
  watch.watch({ objects, prefix: 'p/' }, check).start()
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

it('does not take a bucket for usable that can be read and not written, once a request has failed', async () => {
  const { service, watch, objects } = await open()
  const isWrite = ({ method }: FakeRequest) => method === 'PUT'
  service.fault = (request) => (isWrite(request) ? 'forbidden' : undefined)
  await expect(objects.create('p/x', Buffer.from('x'))).rejects.toMatchObject({ code: 'objects_refused' })
  await expect.poll(() => reasonOf(watch)).toContain('AccessDenied')
  service.fault = () => undefined
  await expect.poll(() => reasonOf(watch)).toBe('saved')
  expect(service.keys()).toEqual(['p/write-probe'])
})

it('does not use a bucket that answers and is not ours', async () => {
  const { watch } = await open(async () => {
    throw new AppError('conflict', 'wrong_bucket', 'It belongs to another store.')
  })
  await expect.poll(() => reasonOf(watch)).toBe('It belongs to another store.')
})

it('answers from its last look while a look hangs', async () => {
  const watch = new BucketWatch()
  const never = () => new Promise<never>(() => {})
  watch.watch({ objects: { probe: never, put: never }, prefix: '' }, async () => {}).start()
  closing.push(() => watch.stop())
  expect(await watch.check()).toBe('saved')
})
