import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { openServerRoutes } from '../../http/routes/servers/server-routes.fixture.ts'
import { child } from '../connections.fixture.ts'
import { oauthLogin } from './oauth-login.ts'

it('says that a server without OAuth probably needs an API key', async () => {
  const server = createServer(({ url = '' }, response) => {
    response.writeHead(url.startsWith('/.well-known') ? 404 : 401, { 'www-authenticate': 'Bearer' }).end('no')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  try {
    await expect(oauthLogin({ server: 'keyed', url, show: () => {}, waitMs: 60_000 })).rejects.toThrow(
      /^The login to "keyed" failed: .*\. The server offers no OAuth login\. If it needs an API key, put it into "headers" in mcp\.json\.$/s
    )
  } finally {
    server.close()
  }
})

it('says in one line that a server can not be reached, or answers with a page for browsers', async () => {
  const server = createServer((_, response) => {
    response
      .writeHead(404, { 'content-type': 'text/html', connection: 'close' })
      .end('<!DOCTYPE html>\n<html><body>Not Found</body></html>')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const failure = () =>
    oauthLogin({ server: 'far', url, show: () => {}, waitMs: 60_000 }).then(
      () => 'no failure',
      (error: Error) => error.message
    )
  expect(await failure()).toMatch(/^The login to "far" failed: [^<\n]*\. The server offers no OAuth login\./)
  server.closeAllConnections()
  await new Promise((closed) => server.close(closed))
  expect(await failure()).toMatch(/^The login to "far" failed: it, .* can't be reached \(ECONNREFUSED\)\.$/)
})

/** A remote server that leads a login to the API of an instance on this machine. */
async function leadingTo(target: string, way: 'redirect' | 'registration'): Promise<Server> {
  const server = createServer(({ url = '', headers, method }, response) => {
    const issuer = `http://${headers.host}`
    if (way === 'redirect' && method === 'POST') return response.writeHead(307, { location: target }).end()
    if (!url.startsWith('/.well-known/oauth-authorization-server')) return response.writeHead(404).end()
    const endpoints = {
      authorization_endpoint: `${issuer}/a`,
      token_endpoint: `${issuer}/t`,
      registration_endpoint: target
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ issuer, ...endpoints, response_types_supported: ['code'] }))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return server
}

// Checked: if the login follows redirects and its requests are not marked, the server is disabled.
it.each(['redirect', 'registration'] as const)('can not be led to our own API by a %s', async (way) => {
  const { url, saved } = await openServerRoutes({ victim: child('steady') }, '')
  const remote = await leadingTo(`${url}/api/servers/victim/disable`, way)
  const address = `http://127.0.0.1:${(remote.address() as AddressInfo).port}/mcp`
  await expect(oauthLogin({ server: 'r', url: address, show: () => {}, waitMs: 60_000 })).rejects.toThrow(
    /login to "r"/
  )
  expect(JSON.stringify(saved().mcpServers.victim)).not.toContain('enabled')
  remote.close()
})
