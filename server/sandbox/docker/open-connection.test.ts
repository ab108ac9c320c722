import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import Dockerode from 'dockerode'
import { expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/fixtures/core.ts'
import { SERVER_EXIT } from '../../../workspace-server/protocol.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createDockerEngine } from './docker-engine.ts'

const limits = { memoryMb: 512, cpus: 0.5, pids: 128, workspaceMb: 256, network: 'none' }

// Seen with 50 sandboxes at once: the engine was so crowded that it did not know within seconds how the server had ended.
it('tries again where a server ended and the engine does not know how', async () => {
  const dir = temporaryFolder()
  const socketPath = join(dir, 'engine.sock')
  let execs = 0
  const http = createServer((request, response) => {
    const [, id] = /^\/exec\/(\d+)\/json/.exec(request.url ?? '') ?? []
    const ended = { Running: false, ExitCode: SERVER_EXIT.staleEpoch }
    const state = id === '1' ? { Running: true, ExitCode: null } : ended
    request.resume()
    response.writeHead(id ? 200 : 201, { 'content-type': 'application/json' })
    response.end(JSON.stringify(id ? state : { Id: String(++execs) }))
  })
  http.on('upgrade', (_request, socket) => {
    socket.end('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
  })
  http.listen(socketPath)
  await once(http, 'listening')
  try {
    const engine = createDockerEngine({ limits, logger: silentLogger, docker: new Dockerode({ socketPath }) })
    await expect(engine.connect('x', 1)).rejects.toMatchObject({ code: 'stale_epoch' })
    expect(execs).toBe(2)
    await engine.close()
  } finally {
    http.closeAllConnections()
    http.close()
    discard(dir)
  }
})
