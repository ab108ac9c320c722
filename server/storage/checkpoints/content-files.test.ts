import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { BackupFolder } from '../backup/backup-folder.ts'
import { copyCheckpoints } from '../migrate/copy-checkpoints.ts'
import { CheckpointFixture, put, sha256 } from './checkpoint-files.fixture.ts'

let fixture: CheckpointFixture
beforeEach(() => {
  fixture = new CheckpointFixture()
})
afterEach(() => fixture.dispose())

const image = Buffer.from('an image')

it('is found by its hash in its own session, is stored once, counts, and goes with the session', async () => {
  const { store } = fixture
  const hash = await store.putContent('s', image)
  expect(hash).toBe(sha256(image))
  expect(await store.putContent('s', image)).toBe(hash)
  expect(fixture.stored('.content')).toHaveLength(1)
  expect(await store.getContent('s', hash)).toEqual(image)
  expect(await store.getContent('other', hash)).toBeUndefined()
  expect(await store.getContent('s', '../../etc/passwd')).toBeUndefined()
  expect(await store.bytes(['s'])).toBe(image.length)
  expect(await store.has('s')).toBe(false)
  await store.remove('s', 99)
  expect(await store.getContent('s', hash)).toBeUndefined()
  expect(readdirSync(fixture.dir)).toEqual([])
})

it('stays when owners of the files change, is in a backup, and damage is noticed', async () => {
  const { store } = fixture
  const hash = await store.putContent('s', image)
  for (const epoch of [1, 2]) {
    const checkpoint = await store.open('s', epoch)
    await put(checkpoint, { a: `of ${epoch}` })
    await checkpoint.close()
  }
  expect(await store.getContent('s', hash)).toEqual(image)
  const backup = new BackupFolder(temporaryFolder())
  expect(await copyCheckpoints(fixture.dir, backup, () => {})).toEqual([])
  const [folder = ''] = readdirSync(join(backup.dir, 'checkpoints'))
  expect(readdirSync(join(backup.dir, 'checkpoints', folder))).toContain(`${hash}.content`)
  writeFileSync(fixture.stored('.content')[0] ?? '', 'else')
  await expect(store.getContent('s', hash)).rejects.toMatchObject({ code: 'checkpoint_damaged' })
})

it('is removed at once, also where it was stored twice', async () => {
  const { store } = fixture
  const hash = await store.putContent('s', image)
  await store.putContent('s', image)
  await store.removeContent('s', hash)
  expect(await store.getContent('s', hash)).toBeUndefined()
  expect(await store.bytes(['s'])).toBe(0)
})
