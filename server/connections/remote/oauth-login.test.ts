import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
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
