import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { Logins } from './logins.ts'

const MB = 1024 * 1024

// Checked: if the whole answer is read, all 200 MB are.
it('stops reading an endless answer during discovery', async () => {
  const dir = temporaryFolder()
  let sent = 0
  function* much() {
    for (; sent < 200; sent++) yield Buffer.alloc(MB, 'x')
  }
  const listener = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    Readable.from(much()).pipe(response)
    response.on('error', () => {})
  })
  await new Promise<void>((ready) => listener.listen(0, '127.0.0.1', ready))
  try {
    const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`
    const logins = new Logins(dir)
    const tokens = { access_token: 'old', token_type: 'Bearer', refresh_token: 'again' }
    await logins.write('far', '', { url, issuer: 'https://issuer.example', client: { client_id: 'me' }, tokens })
    const provider = logins.provider('far', url, '', () => {})
    await provider.token()
    const response = new Response(null, { status: 401 })
    const refused = provider.onUnauthorized?.({ response, serverUrl: new URL(url), fetchFn: fetch })
    await expect(refused).rejects.toThrow()
    expect(sent).toBeLessThan(100)
  } finally {
    listener.closeAllConnections()
    listener.close()
    rmSync(dir, { recursive: true })
  }
})
