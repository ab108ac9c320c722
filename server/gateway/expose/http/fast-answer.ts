import type { ServerResponse } from 'node:http'
import type { JSONRPCMessage } from '@modelcontextprotocol/server'

/** A client that does not read for so long is disconnected. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024

/**
 * The answer to a call that bypasses the SDK. It is one JSON body, which costs a single write. If the server asks or reports something
 * first, it becomes a stream of events.
 */
export class FastAnswer {
  readonly #response: ServerResponse
  #isStream = false

  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** Sends a message before the result. */
  tell(message: JSONRPCMessage): void {
    if (this.#response.destroyed || this.#response.writableEnded) return
    if (!this.#isStream) {
      const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' }
      this.#response.writeHead(200, headers)
    }
    this.#isStream = true
    this.#response.write(eventOf(message))
    if (this.#response.writableLength > MAX_UNREAD_BYTES) this.#response.destroy()
  }

  end(message: JSONRPCMessage): void {
    if (this.#response.destroyed || this.#response.writableEnded) return
    if (this.#isStream) {
      this.#response.end(eventOf(message))
      return
    }
    const text = JSON.stringify(message)
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    this.#response.writeHead(200, headers)
    this.#response.end(text)
  }

  /** Ends it without a result: the client has cancelled the call. */
  drop(): void {
    if (!this.#isStream && !this.#response.headersSent) this.#response.writeHead(202)
    this.#response.end()
  }
}

function eventOf(message: JSONRPCMessage): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`
}
