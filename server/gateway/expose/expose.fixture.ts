import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { silentLogger } from '../../lib/logger.ts'
import type { ApprovalPolicy } from '../../tools/approval-policy.ts'
import { noAudit } from '../../tools/audit/audit.fixture.ts'
import type { Audit } from '../../tools/audit/audit.ts'
import { openTestConnections } from '../../tools/connections/connections.fixture.ts'
import { Gateway } from '../gateway.ts'
import { openHttpDoor } from '../http-door.ts'
import { Exposed } from './exposed.ts'
import { openExposedHttp } from './exposed-http.ts'

/** The HTTP door in the pass-through mode, without the workspace around it. */
export async function serveExposed(
  servers: Record<string, unknown>,
  only?: string,
  audit: Audit = noAudit,
  policy: ApprovalPolicy = () => 'allow'
) {
  const test = await openTestConnections(servers)
  const core = { ...test, policy, audit, learn: () => {} }
  const gateway = new Gateway({ version: '1', logger: silentLogger, core: async () => core })
  const exposed = new Exposed({ only, core, version: '1', logger: silentLogger })
  const http = openExposedHttp(
    async () => exposed,
    silentLogger,
    () => 'local'
  )
  const door = openHttpDoor(gateway, '1', silentLogger, undefined, http)
  const listener = createServer(async (request, response) => {
    void door.handle(request, response, request.method === 'POST' ? await json(request) : undefined)
  })
  await new Promise<void>((ready) => listener.listen(0, '127.0.0.1', ready))
  return {
    ...test,
    url: new URL(`http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`),
    async close() {
      listener.closeAllConnections()
      await new Promise((done) => listener.close(done))
      await door.close()
      await test.close()
    }
  }
}
