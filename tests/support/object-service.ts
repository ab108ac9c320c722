/** A bucket for servers under test: of the service that `TEST_S3_ENDPOINT` names, else of one in this process, behind a gate. */
import { randomUUID } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { FakeObjectService } from '../../server/storage/objects/fake-object-service.ts'
import { hasRealService, TEST_CREDENTIALS } from '../../server/storage/objects/fake-object-store.ts'
import { freePort } from './free-port.ts'

export interface TestBucket {
  /** Settings of a server that uses it. */
  env: Record<string, string>
  /** No connection succeeds until it opens again. */
  shut(): void
  /** Connections succeed, and nothing is answered until it opens again. */
  silence(): void
  open(): void
  close(): Promise<void>
}

export async function openTestBucket(): Promise<TestBucket> {
  const own = hasRealService ? undefined : await new FakeObjectService().start()
  const { TEST_S3_ENDPOINT = '', TEST_S3_BUCKET: bucket = 'tests' } = process.env
  const target = new URL(own?.endpoint ?? TEST_S3_ENDPOINT)
  const port = await freePort()
  const sockets = new Set<Socket>()
  let state: 'open' | 'shut' | 'silent' = 'open'
  const server: Server = createServer((socket) => {
    if (state === 'shut') return void socket.destroy()
    if (state === 'silent') {
      sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
      return
    }
    const onward = connect(Number(target.port), target.hostname)
    for (const [from, to] of [[socket, onward] as const, [onward, socket] as const]) {
      sockets.add(from)
      from.on('error', () => to.destroy()).on('close', () => sockets.delete(from))
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    env: {
      CHECKPOINT_STORE: `s3://${bucket}/e2e-${randomUUID()}`,
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      AWS_ACCESS_KEY_ID: TEST_CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: TEST_CREDENTIALS.secretAccessKey
    },
    shut() {
      state = 'shut'
      cut()
    },
    silence() {
      state = 'silent'
      for (const socket of sockets) socket.unpipe()
    },
    open() {
      if (state === 'silent') cut()
      state = 'open'
    },
    async close() {
      cut()
      await new Promise((resolve) => server.close(resolve))
      await own?.stop()
    }
  }
}
