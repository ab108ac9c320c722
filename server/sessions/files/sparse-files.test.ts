import { createHash } from 'node:crypto'
import { closeSync, createReadStream, ftruncateSync, mkdirSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { WorkspaceCheckpoint as Inside } from '../../../workspace-server/checkpoint/workspace-checkpoint.ts'
import type { ChangesParams, FetchParams, RestoreParams } from '../../../workspace-server/protocol.ts'
import { silentLogger } from '../../lib/logger.ts'
import { FakeConnection, FakeContainer } from '../../sandbox/fake-engine.ts'
import { openCheckpointStore } from '../../storage/checkpoints/checkpoint-files.ts'
import { WorkspaceFiles } from '../sandboxes/workspace-files.ts'

const MB = 1024 * 1024
const SIZE = 96 * MB

let folder: string
let transferred: number

beforeEach(() => {
  folder = temporaryFolder()
  transferred = 0
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** The code that runs inside a sandbox, on a folder of its own, and how many bytes of JSON pass between. */
function sandbox(name: string): { root: string; connection: FakeConnection } {
  const root = join(folder, name)
  mkdirSync(root)
  mkdirSync(join(folder, `${name}-state`))
  const inside = new Inside(root, join(folder, `${name}-state`))
  const connection = new FakeConnection(new FakeContainer({ deployment: 'd', instance: 'i' }))
  const counted = <T>(params: object, reply: T): T => {
    transferred += JSON.stringify(params).length + JSON.stringify(reply).length
    return reply
  }
  return {
    root,
    connection: Object.assign(connection, {
      changes: async (params: ChangesParams = { ack: 0 }) => counted(params, await inside.changes(params)),
      fetch: async (params: FetchParams = { path: '', offset: 0, length: 0 }) => counted(params, inside.fetch(params)),
      restore: async (params: RestoreParams) => counted(params, await inside.restore(params))
    })
  }
}

function makeSparse(path: string, size: number, data: Record<number, string>): void {
  const fd = openSync(path, 'w')
  ftruncateSync(fd, size)
  for (const [at, text] of Object.entries(data)) writeSync(fd, text, Number(at))
  closeSync(fd)
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

// Checked: if no run counts as zeros, 96 MB are sent and stored.
it('saves, moves and restores a sparse file at the cost of its actual content', async () => {
  const checkpoints = join(folder, 'checkpoints')
  const store = openCheckpointStore({ dir: checkpoints, maxSessionBytes: MB, logger: silentLogger })
  const before = sandbox('before')
  makeSparse(join(before.root, 'zeros'), SIZE, {})
  makeSparse(join(before.root, 'pages'), SIZE + 1, { 10: 'head', [17 * MB + 5]: 'middle', [SIZE]: '!' })
  makeSparse(join(before.root, 'small'), 200_000, { 100000: 'x' })
  const saved = await store.open('s', 1)
  await new WorkspaceFiles(before.connection, saved).sync()
  await saved.close()
  expect(transferred).toBeLessThan(200_000)
  expect(await store.bytes(['s'])).toBeLessThan(50_000)

  const after = sandbox('after')
  const opened = await store.open('s', 2)
  const { failed } = await new WorkspaceFiles(after.connection, opened).restore()
  await opened.close()
  expect(failed).toEqual([])
  expect(transferred).toBeLessThan(400_000)
  for (const name of ['zeros', 'pages', 'small']) {
    const [was, is] = [join(before.root, name), join(after.root, name)]
    expect(await hashOf(is), name).toBe(await hashOf(was))
    expect(statSync(is).blocks * 512, name).toBeLessThan(100_000)
  }
})

it('refuses a description of holes that does not fit the file', async () => {
  const store = openCheckpointStore({ dir: join(folder, 'checkpoints'), maxSessionBytes: MB, logger: silentLogger })
  const { root, connection } = sandbox('hostile')
  makeSparse(join(root, 'f'), 2 * MB, {})
  for (const holes of [
    [{ at: 0, length: 3 * MB }],
    [
      { at: 4096, length: 4096 },
      { at: 0, length: 4096 }
    ]
  ]) {
    connection.fetch = async () => ({ data: Buffer.alloc(MB, 1).toString('base64'), holes, eof: false })
    const checkpoint = await store.open('s', 1)
    await expect(new WorkspaceFiles(connection, checkpoint).sync()).rejects.toMatchObject({ code: 'checkpoint_failed' })
    await checkpoint.close()
  }
})
