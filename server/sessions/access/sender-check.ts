/**
 * Which local programs may act here. What a person decides is not for an MCP server to decide: without AUTH_TOKEN, a server that runs
 * on this machine could reach the API, the socket and /mcp like any other program, and approve its own calls. Other users of this
 * machine could do the same. So the process behind a connection must be known, unless the request shows ADMIN_TOKEN.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Sender } from '../../connections/local/peer-process.ts'
import { AppError } from '../../lib/errors.ts'
import type { AddressOf } from '../../lib/web/client-address.ts'
import { LOGIN_REQUEST } from '../../lib/web/login-request.ts'
import type { AdminAccess } from './admin-access.ts'

export interface SenderCheckOptions {
  senderOf: (socket: Socket) => Promise<Sender>
  admin: Pick<AdminAccess, 'isProven'>
  instance: { readonly needsToken: boolean }
  addressOf: AddressOf
  /** Whether a server runs here without a sandbox, or can be started: if not, a sender that is unknown is none. */
  hasLocalServers: () => boolean
}

/**
 * `decision`: changes servers, answers an approval of the inbox, or ends a program. `action`: anything else that changes or calls something.
 * `look`: only reads, for example the calls of other clients and the entries of `mcp.json`.
 */
export type Purpose = 'decision' | 'action' | 'look'

const SENT_BY_SERVER =
  'This request comes from an MCP server that runs here: it may not use the API, the chat or /mcp of its own instance.'
const SENT_BY_LOGIN = 'A remote MCP server has sent a login here: a login may not use the API, the chat or /mcp.'
const SENDER_UNKNOWN =
  'The program that sent this request can\'t be told from an MCP server that runs here (it has closed the connection, or it runs in a user namespace of its own, as a Flatpak browser does, or its files can\'t be read, as those of an SSH tunnel). Set AUTH_TOKEN (the page asks for it), or set ADMIN_TOKEN and send it in the header x-admin-token (the page asks for it under "Servers"), or use a program that runs as your own user.'
const SENT_BY_ANOTHER_USER =
  'This request comes from another user of this machine. Without AUTH_TOKEN, only the user that runs this server and root may use it: set AUTH_TOKEN to let other users in.'

export class SenderCheck {
  readonly #options: SenderCheckOptions
  /** Finding the process takes a while, so a connection that was let through for an action is not looked up again. */
  readonly #passed = new WeakSet<Socket>()

  constructor(options: SenderCheckOptions) {
    this.#options = options
  }

  /** Rejects unless the sender may do this. */
  async check(request: Pick<IncomingMessage, 'socket' | 'headers'>, purpose: Purpose): Promise<void> {
    const { senderOf, admin, instance, addressOf, hasLocalServers } = this.#options
    const { socket, headers } = request
    if (headers[LOGIN_REQUEST] !== undefined) throw new AppError('forbidden', 'sent_by_server', SENT_BY_LOGIN)
    if (purpose !== 'decision' && this.#passed.has(socket)) return
    if (admin.isProven({ headers, address: addressOf(request as IncomingMessage) })) return
    const sender = await senderOf(socket)
    if (sender === 'server') throw new AppError('forbidden', 'sent_by_server', SENT_BY_SERVER)
    // With AUTH_TOKEN, the sender has shown a secret that neither servers nor other users have.
    if (!instance.needsToken) {
      if (sender === 'another-user') throw new AppError('forbidden', 'sent_by_another_user', SENT_BY_ANOTHER_USER)
      const isDoubtful = sender === 'unknown' && (purpose === 'decision' || hasLocalServers())
      // A server hides its socket while it asks, and takes it back to read the answer. So this is true for looking too.
      if (isDoubtful) throw new AppError('forbidden', 'sender_unknown', SENDER_UNKNOWN)
    }
    // An unknown sender may be a server that is enabled later.
    if (sender !== 'unknown') this.#passed.add(socket)
  }
}
