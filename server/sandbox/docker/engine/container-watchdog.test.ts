import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../../lib/logger.ts'
import { createEngineProxy } from '../../engine-proxy/engine-proxy.ts'
import { CHILD_APP, LABEL } from './container-spec.ts'

// Seen to fail with the instance's label alone: the proxy lists nothing unless the filter also names our label.
it('removes the containers of a process that ended, through the engine proxy too, and tries again where the engine fails', async () => {
  const dir = temporaryFolder()
  const [engineSocket, socketPath] = [join(dir, 'engine.sock'), join(dir, 'proxy.sock')]
  const removed = Promise.withResolvers<string>()
  let lists = 0
  const engine = createServer((request, response) => {
    if (request.method === 'DELETE') removed.resolve(String(request.url))
    const path = String(request.url)
    if (path.startsWith('/containers/json') && ++lists === 1)
      return void response.writeHead(500).end('{"message":"busy"}')
    const one = { Id: 'a'.repeat(64), Config: { Labels: { [LABEL.app]: CHILD_APP } } }
    response.end(JSON.stringify(path.startsWith('/containers/json') ? [one] : one))
  })
  const proxy = createEngineProxy({ engineSocket, networks: [], logger: silentLogger })
  for (const [server, path] of [[engine, engineSocket] as const, [proxy, socketPath] as const]) {
    server.listen(path)
    await once(server, 'listening')
  }
  const source = `
    import Dockerode from 'dockerode'
    import { watchContainers } from './server/sandbox/docker/engine/container-watchdog.ts'
    await watchContainers(new Dockerode({ socketPath: ${JSON.stringify(socketPath)} }), 'instance-1')`
  execFileSync(process.execPath, ['--input-type=module', '-e', source])
  expect(await removed.promise).toMatch(/^\/containers\/a{64}\?/)
  for (const server of [engine, proxy]) {
    server.close()
    server.closeAllConnections()
  }
  discard(dir)
})
