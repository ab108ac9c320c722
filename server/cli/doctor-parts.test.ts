import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/fixtures/core.ts'
import { describeDataDir } from './doctor-data.ts'
import { describePort } from './doctor-port.ts'

let dir = ''
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => discard(dir))

describe('the data folder', () => {
  it('is written to and read back, and left as it was, also when it is not there yet', () => {
    expect(describeDataDir(dir)).toBe(`${dir} can be written`)
    expect(describeDataDir(join(dir, 'a/b'))).toMatch(/can be written; the first start makes it$/)
    expect(readdirSync(dir)).toEqual([])
  })

  it('fails with a sentence where it is no folder, or what writes to it fails', () => {
    writeFileSync(join(dir, 'file'), '')
    expect(() => describeDataDir(join(dir, 'file'))).toThrow(/can't be written \(.*\): check DATA_DIR, its permissions/)
    // Permissions don't hold root back; a file system that can't be written to does.
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

  it('can not be had at an address that is not of this machine', async () => {
    await expect(describePort({ HOST: '192.0.2.1', PORT: 0 })).rejects.toThrow(/set HOST to an address of this machine/)
  })
})
