import { Client } from '@modelcontextprotocol/client'
import { afterEach, expect, it, vi } from 'vitest'
import { readEntry } from '../../catalog/read-entry.ts'
import { silentLogger } from '../../lib/logger.ts'
import { LiveServer } from './live-server.ts'
import { ServerConnection } from './server-connection.ts'
import { ServerLog } from './server-log.ts'
import { StartGate } from './start-gate.ts'

afterEach(() => void vi.useRealTimers())

it('lists the tools of a server that says without end that they have changed ever less often', async () => {
  vi.useFakeTimers()
  const entry = readEntry('busy', { command: 'none' }, 0)
  let lists = 0
  class Listed extends LiveServer {
    override async list() {
      lists++
      return []
    }
  }
  let changed = () => {}
  const connection = new ServerConnection({
    entry,
    log: new ServerLog(undefined),
    logger: silentLogger,
    toolsSeen: () => 0,
    gate: new StartGate(1),
    open: async (_, onToolsChanged) => {
      changed = onToolsChanged
      return new Listed(entry, new Client({ name: 'test', version: '1' }), undefined, (text) => text)
    },
    onListed: () => {},
    onFailed: () => {}
  })
  await connection.list(new AbortController().signal)
  changed()
  await vi.advanceTimersByTimeAsync(1)
  expect(lists).toBe(1)
  for (let times = 0; times < 200; times++) {
    changed()
    await vi.advanceTimersByTimeAsync(310)
  }
  expect(lists).toBeLessThan(8)
  await connection.stop()
})
