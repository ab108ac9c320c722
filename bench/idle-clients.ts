import { randomUUID } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { connectClient } from '../tests/support/client.ts'

parentPort?.on('message', async (count: number) => {
  const clients = Array.from({ length: count }, () => connectClient(workerData.url, `idle-${randomUUID()}`))
  await Promise.all(clients.map((client) => client.snapshot()))
  parentPort?.postMessage('open')
})
