import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { readEntry } from '../../catalog/read-entry.ts'
import { describeCredentials } from './doctor-credentials.ts'
import { describeDataDir } from './doctor-data.ts'
import { describePort } from './doctor-port.ts'

let dir = ''
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => discard(dir))

describe('the data folder', () => {
  it('is written to, read back and left as it was, even if it did not exist', () => {
    expect(describeDataDir(dir)).toBe(`${dir} is writable`)
    expect(describeDataDir(join(dir, 'a/b'))).toMatch(/is writable; the first start creates it$/)
    expect(readdirSync(dir)).toEqual([])
  })

  it('fails with a message if it is not a folder, or can not be written to', () => {
    writeFileSync(join(dir, 'file'), '')
    expect(() => describeDataDir(join(dir, 'file'))).toThrow(/can't be written \(.*\): check DATA_DIR, its permissions/)
    // Permissions don't stop root, but a read-only file system does.
    expect(() => describeDataDir('/sys/mcp-orchestrator')).toThrow(/check DATA_DIR/)
    mkdirSync(join(dir, 'kept'))
    expect(readdirSync(dir).toSorted()).toEqual(['file', 'kept'])
  })
})

describe('the port', () => {
  it('is free, in use by someone who is named, or by one of our own', async () => {
    const taken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    await expect(describePort({ HOST: '127.0.0.1', PORT: port })).rejects.toThrow(
      new RegExp(`port ${port} of 127.0.0.1 is in use by .+ \\(process ${process.pid}\\): stop what uses it`)
    )
    taken.close()
    await once(taken, 'close')
    expect(await describePort({ HOST: '127.0.0.1', PORT: port })).toBe(`port ${port} of 127.0.0.1 is free`)
    const ours = createHttpServer((_request, response) => response.end('{"ok":true}')).listen(port, '127.0.0.1')
    await once(ours, 'listening')
    expect(await describePort({ HOST: '127.0.0.1', PORT: port })).toMatchObject({ warn: /MCP Orchestrator/ })
    ours.close()
  })

  it('can not be used at an address that this machine does not have', async () => {
    await expect(describePort({ HOST: '192.0.2.1', PORT: 0 })).rejects.toThrow(/set HOST to an address of this machine/)
  })
})

describe('the credentials file', () => {
  const place = (path: string, mode = 0o700) => {
    const file = join(dir, path)
    mkdirSync(dirname(file), { recursive: true })
    chmodSync(dirname(file), mode)
    writeFileSync(file, 'A=b', { mode: 0o600 })
    return file
  }
  const server = (raw: object) => [readEntry('files', { command: 'x', ...raw }, 1)]

  it('is fine in its own folder, even below a folder that a server uses', () => {
    const file = place('own/credentials')
    expect(describeCredentials(file, server({ args: [dir] }), [])).toBe(`${file}, readable by its owner only`)
    writeFileSync(join(dir, 'own/mcp.json'), '{}')
    expect(describeCredentials(file, server({ args: [dir] }), ['mcp.json'])).toBeTypeOf('string')
  })

  it('gets a warning if others can write to its folder or to one above', () => {
    const others = /others on this machine can write to .*open\. Move it to a folder of its own/
    expect(describeCredentials(place('open/credentials', 0o777), [], [])).toMatchObject({ warn: others })
    expect(describeCredentials(place('open/inner/credentials'), [], [])).toMatchObject({ warn: others })
    chmodSync(join(dir, 'open'), 0o1777)
    expect(describeCredentials(place('open/inner/credentials'), [], [])).toBeTypeOf('string')
  })

  it.each([
    ['its folder as an argument', (at: string) => ({ args: [`--root=${at}/work`] })],
    ['a folder above', (at: string) => ({ args: ['-y', at] })],
    ['its folder as a variable', (at: string) => ({ env: { ROOTS: `/srv:${at}/work` } })],
    ['its folder to work in', (at: string) => ({ cwd: `${at}/work` })],
    ['a folder above, in a sandbox', (at: string) => ({ sandbox: { folders: [at] } })]
  ])('is warned of where a server is given %s', (_, raw) => {
    const file = place('work/credentials')
    writeFileSync(join(dir, 'work/notes.txt'), '')
    const warn = expect.stringMatching(/The server "files" can use .*, which contains it\./)
    expect(describeCredentials(file, server(raw(dir)), [])).toEqual({ warn })
    expect(describeCredentials(file, server({ args: ['/srv/other'] }), [])).toBeTypeOf('string')
    expect(describeCredentials(file, server({ ...raw(dir), enabled: false }), [])).toBeTypeOf('string')
  })

  it('fails if it can not be used', () => {
    const file = place('own/credentials')
    chmodSync(file, 0o644)
    expect(() => describeCredentials(file, [], [])).toThrow(/run chmod 600/)
  })
})
