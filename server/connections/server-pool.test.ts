import { expect, it } from 'vitest'
import { readEntry } from '../catalog/read-entry.ts'
import { silentLogger } from '../lib/logger.ts'
import { StartGate } from '../lib/waiting/start-gate.ts'
import { ServerConnection } from './server-connection.ts'
import { ServerLog } from './server-log.ts'
import { ServerPool } from './server-pool.ts'

it('starts nothing once it is retired', async () => {
  let starts = 0
  const connect = () =>
    new ServerConnection({
      entry: readEntry('a', { command: 'none' }, 0),
      log: new ServerLog(undefined),
      logger: silentLogger,
      toolsSeen: () => 0,
      gate: new StartGate(1),
      open: () => Promise.reject(new Error(`start ${++starts}`)),
      onListed: () => {},
      onFailed: () => {}
    })
  const pool = new ServerPool(2, connect)
  await pool.retire()
  await expect(pool.list(new AbortController().signal)).rejects.toMatchObject({ code: 'server_retired' })
  expect(starts).toBe(0)
})
