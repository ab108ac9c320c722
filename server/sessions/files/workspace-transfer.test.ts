import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { extract } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../lib/errors.ts'
import type { ToolResult } from '../../sandbox/port.ts'
import { fakeWorkspace } from './fake-workspace.ts'
import { WorkspaceTransfer } from './workspace-transfer.ts'

const MB = 1024 * 1024
const refused = (text: string): ToolResult => ({ isError: true, content: [{ type: 'text', text }] })

async function entriesOf(tarGz: Buffer): Promise<Record<string, string>> {
  const entries: Record<string, string> = {}
  const reader = extract()
  reader.end(gunzipSync(tarGz))
  for await (const entry of reader) entries[entry.header.name] = (await buffer(entry)).toString()
  return entries
}

const archive = async (...input: Parameters<typeof fakeWorkspace>) =>
  new WorkspaceTransfer(fakeWorkspace(...input)).archive('s')

// An 'error' that nobody listens for would end the process; here it fails the run.
describe('an archive', () => {
  // Checked: without the limit, all files are in it.
  it('leaves out what would make it too large, says so, and does not read it', async () => {
    const read: string[] = []
    const sessions = fakeWorkspace({ a: 'x'.repeat(60), b: 'x'.repeat(60), c: 'x'.repeat(30) }, ({ path }) => {
      read.push(path)
      return undefined
    })
    const stream = await new WorkspaceTransfer(sessions, { maxArchiveBytes: 100 }).archive('s')
    const entries = await entriesOf(await buffer(stream))
    expect(Object.keys(entries)).toEqual(['a', 'c', 'LEFT-OUT.txt'])
    expect(entries['LEFT-OUT.txt']).toMatch(/^b: The archive would exceed its limit of 0 MB/)
    expect(read).toEqual(['a', 'c'])
  })

  it('has every file', async () => {
    const entries = await entriesOf(await buffer(await archive({ a: 'one', 'b/c': 'two', empty: '' })))
    expect(entries).toEqual({ a: 'one', 'b/c': 'two', empty: '' })
  })

  it('leaves out a file that can not be read, and says which', async () => {
    const stream = await archive({ a: 'one', b: 'x', c: 'three' }, ({ path }) =>
      path === 'b' ? refused('No permission to read "b".') : undefined
    )
    const { 'LEFT-OUT.txt': leftOut, ...entries } = await entriesOf(await buffer(stream))
    expect(entries).toEqual({ a: 'one', c: 'three' })
    expect(leftOut).toBe('b: No permission to read "b".\n')
  })

  it('never hides a file of the workspace behind its own list', async () => {
    const stream = await archive({ 'LEFT-OUT.txt': 'mine', b: 'x' }, ({ path }) =>
      path === 'b' ? refused('no') : undefined
    )
    const entries = await entriesOf(await buffer(stream))
    expect(entries).toEqual({ 'LEFT-OUT.txt': 'mine', '_LEFT-OUT.txt': 'b: no\n' })
  })

  it('keeps the size that it announced when a file grows or ends early, and says which ended early', async () => {
    const files = { grown: 'a'.repeat(MB + 10), short: 'b'.repeat(MB + 10) }
    const stream = await archive(files, ({ path, offset }) => {
      if (offset === 0) return undefined
      if (path === 'short') return refused('"short" has only 3 bytes.')
      const content = Buffer.from('a'.repeat(1000)).toString('base64')
      return { content: [], structuredContent: { content, size: MB + 1000 } }
    })
    const entries = await entriesOf(await buffer(stream))
    expect(entries.grown).toBe('a'.repeat(MB + 10))
    expect(entries.short).toBe(`${'b'.repeat(MB)}${'\0'.repeat(10)}`)
    expect(entries['LEFT-OUT.txt']).toBe('short: "short" has only 3 bytes. It ends early and is padded with zeros.\n')
  })

  it('whose sandbox is lost fails, and nothing else does', async () => {
    const stream = await archive({ a: 'one', b: 'two' }, ({ path }) => {
      if (path === 'b') throw new AppError('unavailable', 'connection_lost', 'gone')
      return undefined
    })
    await expect(buffer(stream)).rejects.toMatchObject({ code: 'connection_lost' })
  })

  it('that nobody wants any more is not read on, and nothing else ends', async () => {
    const read: unknown[] = []
    const stream = await archive(
      Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, 'x'.repeat(MB)])),
      ({ path }) => {
        read.push(path)
        return undefined
      }
    )
    await once(stream, 'readable')
    stream.destroy()
    await once(stream, 'close')
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(read.length).toBeLessThan(10)
  })
})

describe('a download', () => {
  const download = async (...input: Parameters<typeof fakeWorkspace>) => {
    const { size, chunks } = await new WorkspaceTransfer(fakeWorkspace(...input)).read('s', 'a')
    return { size, bytes: buffer(chunks) }
  }
  const later = (bytes: number) => ({
    content: [],
    structuredContent: { content: Buffer.alloc(bytes, 'y').toString('base64'), size: MB + bytes }
  })

  it('of a file that grows has the size that was announced', async () => {
    const { size, bytes } = await download({ a: 'x'.repeat(MB + 5) }, ({ offset }) =>
      offset > 0 ? later(100) : undefined
    )
    expect(size).toBe(MB + 5)
    expect((await bytes).toString()).toBe(`${'x'.repeat(MB)}yyyyy`)
  })

  it('of a file that became shorter fails', async () => {
    const { bytes } = await download({ a: 'x'.repeat(MB + 5) }, ({ offset }) => (offset > 0 ? later(0) : undefined))
    await expect(bytes.then(({ length }) => length)).rejects.toMatchObject({ code: 'file_refused' })
  })

  it.each([-1, 0.5, Number.NaN, 'many', undefined])('of a file with a size of %s is refused', async (size) => {
    const reply = { content: [], structuredContent: { content: '', size } }
    await expect(download({ a: '' }, () => reply)).rejects.toMatchObject({ code: 'file_refused' })
  })
})

it('lists files with their size and the time of their last change', async () => {
  const listing = await new WorkspaceTransfer(fakeWorkspace({ 'a/b': 'one' })).list('s')
  expect(listing).toEqual({ files: [{ path: 'a/b', type: 'file', size: 3, mtimeMs: 7 }], truncated: false })
})

it('refuses an archive of what can not be listed whole, and says every reason that there can be', async () => {
  const callUnrecorded = async () => ({ content: [], structuredContent: { entries: [], truncated: true } })
  const sessions = {
    state: () => 'running',
    run: (_id: string, job: (workspace: never) => unknown) => job({ callUnrecorded } as never)
  }
  const transfer = new WorkspaceTransfer(sessions as never)
  await expect(transfer.archive('s')).rejects.toThrow(/more than 10000, .* too long, or folders are nested too deeply/)
})
