import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import Dockerode from 'dockerode'
import { expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../../tests/support/temporary-folder.ts'
import { SERVER_EXIT } from '../../../../workspace-server/protocol.ts'
import { silentLogger } from '../../../lib/logger.ts'
import { openConnection } from '../../workspace/open-connection.ts'
import { createDockerEngine } from '../docker-engine.ts'
import type { EngineCall } from './engine-call.ts'
import { serverStarter } from './start-server.ts'

const limits = { memoryMb: 512, cpus: 0.5, pids: 128, workspaceMb: 256, network: 'none' }

type Upgrade = (socket: Duplex) => void
const UPGRADED = 'HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n'

/** An engine that starts servers, which do as told. */
async function fakeDocker(stateOf: (exec: string) => object, onUpgrade: Upgrade) {
  const dir = temporaryFolder()
  const socketPath = join(dir, 'engine.sock')
  let execs = 0
  const http = createServer((request, response) => {
    const [, id] = /^\/exec\/(\d+)\/json/.exec(request.url ?? '') ?? []
    request.resume()
    response.writeHead(id ? 200 : 201, { 'content-type': 'application/json' })
    response.end(JSON.stringify(id ? stateOf(id) : { Id: String(++execs) }))
  })
  http.on('upgrade', (_request, socket) => onUpgrade(socket))
  http.listen(socketPath)
  await once(http, 'listening')
  const close = () => {
    http.closeAllConnections()
    http.close()
    discard(dir)
  }
  return { docker: new Dockerode({ socketPath }), execs: () => execs, close }
}

// Seen with 50 sandboxes at once: the engine was so crowded that it did not know within seconds how the server had ended.
it('tries again where a server ended and the engine does not know how', async () => {
  const ended = { Running: false, ExitCode: SERVER_EXIT.staleEpoch }
  const stateOf = (exec: string) => (exec === '1' ? { Running: true, ExitCode: null } : ended)
  const { docker, execs, close } = await fakeDocker(stateOf, (socket) => socket.end(UPGRADED))
  try {
    const engine = createDockerEngine({ limits, logger: silentLogger, docker })
    await expect(engine.connect('x', 1)).rejects.toMatchObject({ code: 'stale_epoch' })
    expect(execs()).toBe(2)
    await engine.close()
  } finally {
    close()
  }
})

// Seen at a load of 50: the next server was started beside the slow one, which ended it when it found its own stream closed.
it('takes a server that is slow for slow, and starts no other beside it', async () => {
  const { docker, execs, close } = await fakeDocker(
    () => ({ Running: false, ExitCode: 137 }),
    (socket) =>
      socket
        .resume()
        .on('error', () => {})
        .write(UPGRADED)
  )
  try {
    const call: EngineCall = (_options, run) => run(new AbortController().signal)
    const start = serverStarter(docker, call, 'x')
    const asked = { start, logger: silentLogger, containerId: 'x', epoch: 1, resume: false, gvisor: false }
    await expect(openConnection({ ...asked, initializeMs: 50 })).rejects.toMatchObject({ kind: 'timeout' })
    expect(execs()).toBe(1)
  } finally {
    close()
  }
})
