import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { registerServe } from '../../server/app/gateway/registration.ts'
import { openStore } from '../../server/app/open-store.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { child } from '../../server/connections/connections.fixture.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { eventually } from '../support/eventually.ts'
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
const closers: (() => void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
  await stopServers()
})

const servers = { a: child('steady', [], { approval: { echo: 'ask' } }) }

/** A gateway of the user whose home this is, in the user's usual folder. */
async function gatewayOf(home: string, its: Record<string, unknown> = servers) {
  const dataDir = join(home, 'mcp-orchestrator')
  const gateway = await startGateway(its, { env: { HOME: home, XDG_DATA_HOME: home, DATA_DIR: dataDir } })
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

  // Checked: if only the gateway's own folder is covered, the server reads the chats, and can approve its own calls in the inbox.
  it.each([
    ['runs already', true],
    ['begins before the server starts', false]
  ])(
    'a server of the gateway can neither read nor write the store of the serve that %s',
    async (_when, runsAlready) => {
      const [home, project] = [temporaryFolder(), temporaryFolder()]
      const environment = { HOME: home, XDG_DATA_HOME: home }
      const data = join(project, 'data')
      const open = async () => {
        const settings = loadSettings({ env: { DATA_DIR: data } })
        await (await openStore(settings, silentLogger)).close()
        writeFileSync(join(data, 'chat.txt'), 'what a person wrote')
        closers.push(registerServe(settings, environment))
      }
      if (runsAlready) await open()
      const gateway = await gatewayOf(home, { evil: child('shell', [], { cwd: project }) })
      await gateway.call('list_capabilities', {})
      if (!runsAlready) await open()
      const run = async (command: string) =>
        textOf(await gateway.call('execute', { server: 'evil', tool: 'run', params: { command } }))
      const seen = await run(
        `cat data/chat.txt; ls data; echo forged > data/chat.txt; rm -f data/store.db; mv data other`
      )
      expect(seen).not.toContain('what a person wrote')
      expect(seen).not.toContain('store.db')
      expect(readFileSync(join(data, 'chat.txt'), 'utf8')).toBe('what a person wrote')
      expect(existsSync(join(data, 'store.db'))).toBe(true)
    }
  )
})
