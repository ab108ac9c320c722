import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { FakeOwner } from '../fake-owner.ts'
import type { RestoreParams } from '../protocol.ts'
import { TreeScanner } from './tree-scanner.ts'
import { WorkspaceCheckpoint } from './workspace-checkpoint.ts'

type Entry = RestoreParams['entries'][number]

const owners: FakeOwner[] = []
let owner: FakeOwner
const start = async () => {
  const started = await FakeOwner.start()
  owners.push(started)
  return started
}
const at = (path: string) => join(owner.root, path)
const b64 = (text: string | Buffer) => Buffer.from(text).toString('base64')
const file = (path: string, content: string | Buffer, more: Partial<Entry> = {}): Entry =>
  ({
    path,
    type: 'file',
    mode: 0o644,
    mtimeMs: 1_700_000_000_123.456,
    size: Buffer.from(content).length,
    hash: createHash('sha256').update(content).digest('hex'),
    data: b64(content),
    ...more
  }) as Entry

beforeEach(async () => {
  owner = await start()
})
afterEach(async () => {
  await Promise.all(owners.splice(0).map((each) => each.stop()))
})

describe('round trip', () => {
  it('creates the same tree elsewhere, which then has no changes', async () => {
    await owner.run(
      "mkdir -p a/b empty ro; echo 1 > a/b/f; chmod 750 a/b/f; ln -s ../../etc a/l; echo 2 > $'a/\\xff'; echo 3 > ro/f; chmod 444 ro/f; chmod 555 ro; touch -d 2001-02-03 a/b empty a"
    )
    const { put } = await owner.changes({ ack: 0 })
    const other = await start()
    expect(await other.restore(put)).toEqual({ failed: [] })
    const list = 'find . -mindepth 1 -printf "%P %y %m %s %l %Ts\\n" | sort; cat a/b/f ro/f'
    const trees = await Promise.all([owner, other].map((each) => each.run(list)))
    expect(trees[0]).toBe(trees[1])
    const after = await other.changes({ ack: 0 })
    expect(after).toMatchObject({ put: [], deleted: [] })
    await other.run('chmod 755 ro; echo new > a/b/f; rm a/l')
    const changed = await other.changes({ ack: after.seq })
    expect(changed.put.map(({ path }) => path)).toEqual(['a', 'a/b/f', 'ro'])
    expect(changed.deleted).toEqual(['a/l'])
  })

  it('restores large files in parts, and zeros without using space', async () => {
    const content = Buffer.concat([Buffer.alloc(1_000_000, 'x'), Buffer.alloc(8_000_000), Buffer.alloc(1_000_000, 'y')])
    const hash = createHash('sha256').update(content).digest('hex')
    for (let offset = 0; offset < content.length; offset += 1_000_000) {
      const data = b64(content.subarray(offset, offset + 1_000_000))
      const entry = file('big', '', { size: content.length, hash, data, offset, mode: 0o400 } as Partial<Entry>)
      expect(await owner.restore([entry])).toEqual({ failed: [] })
    }
    expect(readFileSync(at('big')).equals(content)).toBe(true)
    expect(statSync(at('big')).blocks * 512).toBeLessThan(3_000_000)
    expect(statSync(at('big')).mode & 0o777).toBe(0o400)
    expect((await owner.changes({ ack: 0 })).put).toEqual([])
  })

  it('keeps times of folders whose files come in a later call', async () => {
    const dir: Entry = { path: 'd', type: 'dir', mode: 0o755, mtimeMs: 1_600_000_000_000 }
    await owner.restore([dir])
    await owner.restore([file('d/f', 'x')])
    expect(statSync(at('d')).mtimeMs).toBe(1_600_000_000_000)
    expect((await owner.changes({ ack: 0 })).put).toEqual([])
  })
})

describe('content behind the line', () => {
  const withBytes = (path: string, content: string) => ({
    ...file(path, content),
    data: undefined,
    bytes: content.length
  })
  const restoreRaw = (entries: object[], content: string, bytes = content.length) => {
    const { answer } = owner.post('workspace/restore', { entries, contentBytes: bytes })
    owner.child.stdin?.write(content)
    return answer
  }

  it('writes the content of many files from one piece', async () => {
    const evil = '\n{"jsonrpc":"2.0","id":7,"method":"tools/call"}\n'
    const entries = [
      withBytes('a', 'one'),
      file('b', 'two'),
      withBytes('c', ''),
      withBytes('../x', 'bad'),
      withBytes('d', evil)
    ]
    const { result } = await restoreRaw(entries, `onebad${evil}`)
    expect(result).toMatchObject({ failed: [{ path: '../x' }] })
    expect(['a', 'b', 'c', 'd'].map((path) => readFileSync(at(path), 'utf8'))).toEqual(['one', 'two', '', evil])
    expect((await owner.changes({ ack: 0 })).put).toEqual([])
  })

  it('refuses more or less content than the entries say, and content in the line, and goes on', async () => {
    for (const content of ['toomuch', 'no']) {
      expect((await restoreRaw([withBytes('a', 'four')], content)).error?.message).toBeTruthy()
    }
    const inLine = await owner.request('workspace/restore', { entries: [withBytes('a', 'four')], content: 'four' })
    expect(inLine.error?.message).toContain('content')
    expect(await owner.run('ls')).toBe('')
  })
})

describe('the first scan after a restore', () => {
  const checkpointOf = () => {
    const [root, state] = [temporaryFolder(), temporaryFolder()]
    folders.push(root, state)
    return { root, files: new WorkspaceCheckpoint(root, state) }
  }
  const folders: string[] = []
  afterEach(() => {
    vi.restoreAllMocks()
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
  })
  const tree: Entry[] = [{ path: 'd', type: 'dir', mode: 0o755, mtimeMs: 1 }, file('d/a', '1'), file('d/b', '2')]

  it('looks only at what a tool has changed', async () => {
    const { root, files } = checkpointOf()
    const walk = vi.spyOn(TreeScanner.prototype, 'walk')
    await files.restore({ entries: tree })
    files.beforeTool()
    writeFileSync(join(root, 'd/a'), 'changed')
    writeFileSync(join(root, 'new'), 'x')
    rmSync(join(root, 'd/b'))
    const { put, deleted } = await files.changes({ ack: 0 })
    expect(put.map(({ path }) => path)).toEqual(['d', 'd/a', 'new'])
    expect(deleted).toEqual(['d/b'])
    expect(walk).not.toHaveBeenCalled()
  })

  // Checked: if the names are not compared, `stray` is never reported.
  it('looks at everything if something else was there, before or after, or if a restore has failed', async () => {
    const stray = checkpointOf()
    await stray.files.restore({ entries: tree })
    writeFileSync(join(stray.root, 'd/stray'), 'x')
    stray.files.beforeTool()
    expect((await stray.files.changes({ ack: 0 })).put.map(({ path }) => path)).toContain('d/stray')

    const root = temporaryFolder()
    folders.push(root)
    mkdirSync(join(root, 'old'))
    const used = new WorkspaceCheckpoint(root, temporaryFolder())
    await used.restore({ entries: tree })
    used.beforeTool()
    expect((await used.changes({ ack: 0 })).put.map(({ path }) => path)).toEqual(['old'])

    const failing = checkpointOf()
    const walk = vi.spyOn(TreeScanner.prototype, 'walk')
    await failing.files.restore({ entries: [...tree, file('../x', '')] })
    failing.files.beforeTool()
    await failing.files.changes({ ack: 0 })
    expect(walk).toHaveBeenCalledOnce()
  })
})

describe('hostile or unlucky entries', () => {
  it('never writes outside or through links, and continues with the other entries', async () => {
    mkdirSync(join(owner.folder, 'target'))
    symlinkSync(join(owner.folder, 'target'), at('out'))
    writeFileSync(join(owner.folder, 'target/precious'), 'old')
    symlinkSync(join(owner.folder, 'target/precious'), at('direct'))
    writeFileSync(at('plain'), '')
    const paths = ['../x', '/etc/x', 'a/../../x', 'out/x', 'plain/x', '', '.', 'a//b', 'a\0b', `\0b64:${b64('../y')}`]
    const { failed } = await owner.restore([
      ...paths.map((path) => file(path, 'bad')),
      file('direct', 'new'),
      file('good', '1')
    ])
    expect(failed.map(({ path }) => path)).toEqual(paths)
    expect(readFileSync(join(owner.folder, 'target/precious'), 'utf8')).toBe('old')
    expect(lstatSync(at('direct')).isFile()).toBe(true)
    expect(readFileSync(at('good'), 'utf8')).toBe('1')
  })

  it('refuses parts that do not fit, and a file in place of a full folder', async () => {
    mkdirSync(at('full/sub'), { recursive: true })
    const entries = [
      file('short', 'abc', { size: 5 } as Partial<Entry>),
      file('long', 'abc', { size: 2, offset: 0 } as Partial<Entry>),
      file('orphan', 'abc', { size: 9, offset: 6 } as Partial<Entry>),
      file('full', 'abc')
    ]
    expect((await owner.restore(entries)).failed.map(({ path }) => path)).toEqual(['short', 'long', 'orphan', 'full'])
    expect(await owner.run('find . -type f')).toBe('')
  })

  it('keeps link targets unchanged and replaces what is in the way', async () => {
    writeFileSync(at('l'), 'file')
    await owner.restore([{ path: 'l', type: 'link', target: '/a/../b\n', mtimeMs: 5000 }])
    expect(readlinkSync(at('l'))).toBe('/a/../b\n')
    await owner.restore([{ path: 'l', type: 'dir', mode: 0o700, mtimeMs: 5000 }])
    expect(lstatSync(at('l')).isDirectory()).toBe(true)
  })
})
