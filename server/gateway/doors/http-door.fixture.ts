import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { HttpDoor } from './http-door.ts'

/** A door on its own port. With `parsed`, like behind a framework that has read the body; without it, the door reads it. */
export async function serveDoor(
  door: HttpDoor,
  { parsed = false } = {}
): Promise<{ url: URL; close(): Promise<void> }> {
  const http = createServer(async (request, response) => {
    const body = parsed && request.method === 'POST' ? await json(request) : undefined
    await door.handle(request, response, body)
  })
  await new Promise<void>((ready) => http.listen(0, '127.0.0.1', ready))
  return {
    url: new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`),
    async close() {
      http.closeAllConnections()
      await new Promise((done) => http.close(done))
      await door.close()
    }
  }
}
