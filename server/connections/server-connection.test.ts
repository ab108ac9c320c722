import { Client } from '@modelcontextprotocol/client'
import { afterEach, expect, it, vi } from 'vitest'
import { readEntry } from '../catalog/read-entry.ts'
import { silentLogger } from '../lib/logger.ts'
import { LiveServer } from './live-server.ts'
import { ServerConnection } from './server-connection.ts'
import { ServerLog } from './server-log.ts'
import { StartGate } from './start-gate.ts'

afterEach(() => void vi.useRealTimers())

it.each([
  ['stops when it has had no call for idleSeconds', 5, 'stopped'],
  ['with idleSeconds 0 never stops for want of work', 0, 'running']
])('%s', async (_, idleSeconds, state) => {
  vi.useFakeTimers()
  const entry = readEntry('still', { command: 'none', idleSeconds }, 0)
  class Open extends LiveServer {
    closed = false
    override get isOpen() {
      return !this.closed
    }
    override async list() {
      return []
    }
    override async close() {
      this.closed = true
    }
  }
  const connection = new ServerConnection({
    entry,
    log: new ServerLog(undefined),
    logger: silentLogger,
    toolsSeen: () => 0,
    gate: new StartGate(1),
    open: async () => new Open(entry, new Client({ name: 'test', version: '1' }), undefined, (text) => text),
    onListed: () => {},
    onFailed: () => {}
  })
  await connection.list(new AbortController().signal)
  expect(connection.state.state).toBe('running')
  await vi.advanceTimersByTimeAsync(86_400_000)
  expect(connection.state.state).toBe(state)
  await connection.stop()
})

it('lists tools less and less often for a server that keeps announcing changes', async () => {
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
