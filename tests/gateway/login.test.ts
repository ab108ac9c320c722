import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { COMMON, Logins } from '../../server/connections/remote/logins.ts'
import { type OAuthOptions, type OAuthServers, startOAuthServers } from '../fixtures/oauth-servers.ts'
import { type GatewayProcess, spawnGateway, startGateway } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const running: { end(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of running.splice(0)) await one.end()
})

async function open(options: OAuthOptions = {}) {
  const oauth = await startOAuthServers(options)
  const dir = temporaryFolder()
  const config = join(dir, 'mcp.json')
  const data = join(dir, 'data')
  writeFileSync(config, JSON.stringify({ mcpServers: { guarded: { url: oauth.url }, local: { command: 'x' } } }))
  /** Says yes as soon as an address is shown. */
  const servers = async (...args: string[]) => {
    const command = spawnGateway(['servers', ...args, '--config', config, '--data-dir', data], {})
    let out = ''
    let asked = false
    command.stdout.on('data', (chunk) => {
      out = `${out}${chunk}`
    })
    command.stderr.on('data', async (chunk) => {
      out = `${out}${chunk}`
      const url = /^(http\S+authorize\S+)$/m.exec(out)?.[1]
      if (url === undefined || asked) return
      asked = true
      await fetch(url).then((page) => page.text())
    })
    const code = await new Promise((done) => command.once('close', done))
    return { code, out }
  }
  running.push({ end: () => oauth.close() })
  return { oauth, servers, data }
}

async function gatewayFor(oauth: OAuthServers, data: string): Promise<GatewayProcess> {
  const gateway = await startGateway({ guarded: { url: oauth.url } }, { env: { DATA_DIR: data, LOG_LEVEL: 'debug' } })
  running.unshift(gateway)
  return gateway
}

const hello = (gateway: GatewayProcess) => gateway.call('execute', { server: 'guarded', tool: 'hello' })

describe('a remote server that wants OAuth', { timeout: 60_000 }, () => {
  it('says how to log in, is served after the login, refreshed on expiry, and refused after the logout', async () => {
    const { oauth, servers, data } = await open()
    const gateway = await gatewayFor(oauth, data)
    expect(textOf(await hello(gateway))).toBe(
      'The server "guarded" asks for a login: run mcp-orchestrator servers login "guarded". If it needs an API key instead, put it into "headers" in mcp.json.'
    )
    const said = [await servers('login', 'guarded')]
    expect(said[0]).toMatchObject({
      code: 0,
      out: expect.stringContaining(`Logged in to "guarded" at ${oauth.issuer}.`)
    })
    const [file = ''] = readdirSync(join(data, 'logins'))
    expect(statSync(join(data, 'logins', file)).mode & 0o777).toBe(0o600)
    expect(statSync(join(data, 'logins')).mode & 0o777).toBe(0o700)

    // No restart, and no rest after the failures before.
    expect(textOf(await hello(gateway))).toBe('hello')
    oauth.expire()
    const answers = await Promise.all(Array.from({ length: 8 }, () => hello(gateway)))
    expect(answers.map(textOf)).toEqual(Array(8).fill('hello'))
    expect(oauth.refreshes).toBe(1)

    said.push(await servers('test', 'guarded', '--json'), await servers('logout', 'guarded'))
    expect(said[1]?.code).toBe(0)
    expect(textOf(await hello(gateway))).toMatch(/asks for a login: run mcp-orchestrator servers login/)
    const everything = said.map(({ out }) => out).join('') + gateway.stderr() + JSON.stringify(answers)
    expect(oauth.tokens.filter((token) => everything.includes(token))).toEqual([])
  })

  it('is refreshed before its token ends, where that is known', async () => {
    const { oauth, servers, data } = await open({ expiresIn: 5 })
    await servers('login', 'guarded')
    const gateway = await gatewayFor(oauth, data)
    expect(textOf(await hello(gateway))).toBe('hello')
    expect(oauth.refreshes).toBeGreaterThan(0)
  })

  // Checked: if the issuer is not checked, the other issuer is asked before the request is refused.
  it('gets no token of another issuer, and none is sent there', async () => {
    const { oauth, servers, data } = await open()
    await servers('login', 'guarded')
    const gateway = await gatewayFor(oauth, data)
    const other = await startOAuthServers()
    running.push({ end: () => other.close() })
    oauth.moveTo(other.issuer)
    oauth.expire()
    const answer = textOf(await hello(gateway))
    expect(answer).toMatch(
      new RegExp(`now names ${other.issuer}.* as the issuer .* your login is from ${oauth.issuer}`)
    )
    expect([oauth.refreshes, other.refreshes]).toEqual([0, 0])
  })

  // Checked: if the resource is not checked, the server answers "hello" with the other server's token.
  it('gets no token for another server', async () => {
    const { oauth, servers, data } = await open()
    await servers('login', 'guarded')
    const gateway = await gatewayFor(oauth, data)
    oauth.pretendToBe('https://bank.example/mcp')
    oauth.expire()
    const answer = textOf(await hello(gateway))
    expect(answer).toMatch(/now asks for a token for https:\/\/bank\.example\/mcp, which is not its address/)
    expect(oauth.audiences).toEqual([])
  })

  it('is refreshed once by several gateways of one data folder', async () => {
    const { oauth, servers, data } = await open({ expiresIn: 5, refreshMs: 300 })
    await servers('login', 'guarded')
    const providers = [1, 2].map(() =>
      new Logins(join(data, 'logins')).provider('guarded', oauth.url, COMMON, () => {})
    )
    const [one, other] = await Promise.all(providers.map((provider) => provider.token()))
    expect(one).toBe(other)
    expect(oauth.tokens.indexOf(one ?? '')).toBeGreaterThan(0)
    expect(oauth.refreshes).toBe(1)
    expect(readdirSync(join(data, 'logins'))).toHaveLength(1)
  })

  it('asks for a new login when the old one is revoked, keeps none for another address, and tells a no', async () => {
    const { oauth, servers, data } = await open()
    await servers('login', 'guarded')
    oauth.expire(true)
    const gateway = await gatewayFor(oauth, data)
    expect(textOf(await hello(gateway))).toMatch(/no longer accepts its login .*run mcp-orchestrator servers login/)
    const [file = ''] = readdirSync(join(data, 'logins'))
    const path = join(data, 'logins', file)
    writeFileSync(path, readFileSync(path, 'utf8').replace(oauth.url, 'http://127.0.0.1:1/mcp'))
    expect(textOf(await hello(gateway))).toMatch(/asks for a login/)
    expect(await servers('login', 'local')).toMatchObject({ code: 2, out: expect.stringContaining('a local server') })
    const no = await open({ deny: true })
    expect(await no.servers('login', 'guarded')).toMatchObject({
      code: 1,
      out: expect.stringContaining('The login to "guarded" failed: the answer was access_denied.')
    })
  })

  it('is served with the login of the one who calls, where there is one', async () => {
    const { oauth, servers, data } = await open()
    await servers('login', 'guarded', '--owner', 'someone')
    const gateway = await gatewayFor(oauth, data)
    // This client is not that owner.
    expect(textOf(await hello(gateway))).toMatch(/asks for a login/)
    await servers('login', 'guarded', '--owner', 'local')
    expect(textOf(await hello(gateway))).toBe('hello')
  })
})
