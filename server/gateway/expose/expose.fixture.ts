import { noAudit } from '../../audit/audit.fixture.ts'
import type { Audit } from '../../audit/audit.ts'
import { openTestConnections } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import { serveDoor } from '../doors/http-door.fixture.ts'
import { openHttpDoor } from '../doors/http-door.ts'
import { Gateway } from '../execute/gateway.ts'
import { Exposed } from './exposed.ts'
import { openExposedHttp } from './http/exposed-http.ts'

interface ExposedTest {
  audit?: Audit
  policy?: ApprovalPolicy
  leftMs?: number
}

/** The HTTP door in the pass-through mode, without the workspace. */
export async function serveExposed(
  servers: Record<string, unknown>,
  only?: string,
  { audit = noAudit, policy = () => 'allow', leftMs }: ExposedTest = {}
) {
  const test = await openTestConnections(servers)
  const core = { ...test, policy, audit, learn: () => {} }
  const gateway = new Gateway({ version: '1', logger: silentLogger, core: async () => core })
  const exposed = new Exposed({ only, core, version: '1', logger: silentLogger })
  const http = openExposedHttp(
    async () => exposed,
    silentLogger,
    () => 'local',
    leftMs === undefined ? {} : { leftMs }
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
