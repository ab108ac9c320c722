import { silentLogger } from '../../lib/logger.ts'
import type { ApprovalPolicy } from '../../tools/approval-policy.ts'
import { noAudit } from '../../tools/audit/audit.fixture.ts'
import type { Audit } from '../../tools/audit/audit.ts'
import { openTestConnections } from '../../tools/connections/connections.fixture.ts'
import { Gateway } from '../gateway.ts'
import { serveDoor } from '../http-door.fixture.ts'
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
  const served = await serveDoor(openHttpDoor(gateway, '1', silentLogger, undefined, http), { parsed: true })
  return {
    ...test,
    url: served.url,
    async close() {
      await served.close()
      await test.close()
    }
  }
}
