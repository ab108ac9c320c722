/** Measures the heap that an open, idle session needs. The server runs here; its clients run in a thread with a separate heap. */
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { createApp } from '../server/app/app.ts'
import { loadSettings } from '../server/config/load-settings.ts'
import { silentLogger } from '../server/lib/logger.ts'
import { discard, temporaryFolder } from '../tests/support/temporary-folder.ts'
import { NO_LIMITS } from './no-limits.ts'

const BATCH = 80

export async function heapPerIdleSession(): Promise<object> {
  const dataDir = temporaryFolder()
  const env = { ...NO_LIMITS, DATA_DIR: dataDir, PORT: '0', WARM_POOL_SIZE: '0', LLM_PROVIDER: 'demo' }
  const app = await createApp(loadSettings({ env }), silentLogger)
  await app.start()
  const clients = new Worker(new URL('./idle-clients.ts', import.meta.url), { workerData: { url: app.url() } })
  const open = async () => {
    clients.postMessage(BATCH)
    await once(clients, 'message')
  }
  await open() // objects that are created once, with the first sessions, don't count
  const before = heapUsed()
  await open()
  const bytes = Math.round((heapUsed() - before) / BATCH)
  await clients.terminate()
  await app.stop()
  discard(dataDir)
  return { bytes, sessions: BATCH }
}

function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect === 'function') for (let round = 0; round < 4; round++) collect()
  return process.memoryUsage().heapUsed
}
