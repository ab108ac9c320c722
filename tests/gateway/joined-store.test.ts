import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../support/eventually.ts'
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
  await stopServers()
})

const servers = { a: child('steady', [], { approval: { echo: 'ask' } }) }

/** A gateway of the user whose home this is, in the user's usual folder. */
async function gatewayOf(home: string) {
  const dataDir = join(home, 'mcp-orchestrator')
  const gateway = await startGateway(servers, { env: { HOME: home, XDG_DATA_HOME: home, DATA_DIR: dataDir } })
  running.push(gateway)
  return { ...gateway, dataDir }
}

describe('the gateway and the serve of one user', { timeout: 120_000 }, () => {
  it('find each other: index and inbox are shared, all other files stay apart', async () => {
    const home = temporaryFolder()
    const served = await serve({ HOME: home, XDG_DATA_HOME: home })
    await eventually('the registration', () => existsSync(join(home, 'mcp-orchestrator/serve.json')))
    const gateway = await gatewayOf(home)
    const call = gateway.call('execute', { server: 'a', tool: 'echo', params: { message: 'hi' } })
    type Waiting = { id: string; server: string; hash: string }
    let waiting: Waiting | undefined
    await eventually('the call to wait in the page', async () => {
      const response = await fetch(`${served.url}/api/approvals`)
      const { approvals } = (await response.json()) as { approvals: Waiting[] }
      waiting = approvals[0]
      return waiting !== undefined
    })
    const answered = await fetch(`${served.url}/api/approvals/${waiting?.id}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ approved: true, hash: waiting?.hash })
    })
    expect([waiting?.server, answered.ok]).toEqual(['a', true])
    expect(textOf(await call)).toContain('hi')
    // Its own folder has its audit log, and no store; no chat of the other is there either.
    expect(readdirSync(gateway.dataDir)).toContain('audit')
    expect(readdirSync(gateway.dataDir)).not.toContain('store.db')
    await gateway.end()
    running.length = 0
    // The next gateway knows the tools from the shared index, although none of its servers has run.
    const next = await gatewayOf(home)
    expect(textOf(await next.call('list_capabilities', {}))).toContain('echo')
  })

  it('do not find each other across homes, or when it has ended', async () => {
    const home = temporaryFolder()
    const served = await serve({ HOME: home, XDG_DATA_HOME: home })
    const stranger = await gatewayOf(temporaryFolder())
    await stranger.call('list_capabilities', {})
    expect(existsSync(join(stranger.dataDir, 'store.db'))).toBe(true)
    await served.stop()
    const late = await gatewayOf(home)
    await late.call('list_capabilities', {})
    expect(existsSync(join(late.dataDir, 'store.db'))).toBe(true)
  })
})
