/** The code that runs inside a sandbox, on a folder of its own and without a container, and a look at the folder from outside. */
import { createHash } from 'node:crypto'
import { closeSync, lstatSync, mkdirSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { WorkspaceCheckpoint as Inside } from '../../../workspace-server/checkpoint/workspace-checkpoint.ts'
import type { ChangesParams, FetchParams, RestoreParams } from '../../../workspace-server/protocol.ts'
import { FakeConnection, FakeContainer } from '../../sandbox/fake-engine.ts'

export function insideSandbox(folder: string, name: string): { root: string; connection: FakeConnection } {
  const root = join(folder, name)
  mkdirSync(root, { recursive: true })
  mkdirSync(join(folder, `${name}-state`), { recursive: true })
  const inside = new Inside(root, join(folder, `${name}-state`))
  const connection = new FakeConnection(new FakeContainer({ deployment: 'd', instance: 'i' }))
  const methods = {
    changes: (params: ChangesParams = { ack: 0 }) => inside.changes(params),
    fetch: async (params: FetchParams = { path: '', offset: 0, length: 0 }) => inside.fetch(params),
    restore: (params: RestoreParams) => inside.restore(params)
  }
  return { root, connection: Object.assign(connection, methods) }
}

/** A path in a folder, with one character per byte, so that it need not be UTF-8. */
export const rawPath = (root: string, path: string): Buffer => Buffer.from(`${root}/${path}`, 'latin1')

/** By path: type, mode and content of everything in a folder. */
export function treeOf(root: string, folder = '', tree: Record<string, string> = {}): Record<string, string> {
  for (const name of readdirSync(rawPath(root, folder), 'latin1')) {
    const path = folder === '' ? name : `${folder}/${name}`
    const full = rawPath(root, path)
    const stats = lstatSync(full)
    const mode = (stats.mode & 0o7777).toString(8)
    if (stats.isSymbolicLink()) tree[path] = `link ${readlinkSync(full, 'latin1')}`
    else if (stats.isDirectory()) tree[path] = `dir ${mode}`
    else tree[path] = `file ${mode} ${stats.size} ${hashOf(full)}`
    if (stats.isDirectory()) treeOf(root, path, tree)
  }
  return tree
}

function hashOf(path: Buffer): string {
  const hash = createHash('sha256')
  const fd = openSync(path, 'r')
  const chunk = Buffer.alloc(1024 * 1024)
  for (let read = readSync(fd, chunk); read > 0; read = readSync(fd, chunk)) hash.update(chunk.subarray(0, read))
  closeSync(fd)
  return hash.digest('hex')
}
