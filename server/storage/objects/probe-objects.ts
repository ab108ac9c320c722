import { randomUUID } from 'node:crypto'
import { AppError } from '../../lib/errors.ts'
import { contentOf, type ObjectStore } from './object-store.ts'

const PROBE_BYTES = 16 * 1024

/** Does once in the bucket what an instance does there: writes, reads, lists and deletes. */
export async function probeObjects(objects: ObjectStore, prefix: string): Promise<void> {
  const key = `${prefix}write-probe-${randomUUID()}`
  const written = Buffer.alloc(PROBE_BYTES, 1)
  await objects.put(key, contentOf(written))
  try {
    const found = await objects.read(key, 0, PROBE_BYTES)
    if (!found?.bytes.equals(written)) {
      throw new AppError('unavailable', 'store_lost_write', 'The bucket accepted a write but did not keep it.')
    }
    await objects.list(key)
    await objects.listUploads(key)
  } finally {
    await objects.remove([key])
  }
}
