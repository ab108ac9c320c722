import type { Server as HttpServer } from 'node:http'
import type { Server, ServerOptions, Socket } from 'socket.io'
import type { ClientToServer, Progress, ServerToClient } from '../../contract/live.ts'
import type { Logger } from '../lib/logger.ts'
import type { ReportRefusal } from '../lib/refusals.ts'
import type { AddressOf } from '../lib/web/client-address.ts'
import type { Models } from '../models/port.ts'
import type { ApprovalInbox } from '../policy/approval-inbox.ts'
import type { InstanceAccess } from '../sessions/access/instance-access.ts'
import type { OwnerAccess } from '../sessions/access/owner-access.ts'
import type { SenderCheck } from '../sessions/access/sender-check.ts'
import type { SessionAccess } from '../sessions/access/session-access.ts'
import type { Chat } from '../sessions/chat/chat.ts'
import type { SessionDirectory } from '../sessions/directory/session-directory.ts'
import type { SessionFeed } from '../sessions/feed/session-feed.ts'
import type { EventLog } from '../storage/event-log.ts'

export interface SocketServerOptions {
  httpServer: HttpServer
  chat: Chat
  access: SessionAccess
  owners: Pick<OwnerAccess, 'ownerOf' | 'isKnown'>
  models: Models
  feed: SessionFeed
  events: Pick<EventLog, 'read' | 'lastSeq'>
  instance: Pick<InstanceAccess, 'check' | 'isKnown' | 'needsToken'>
  /** Which local programs may connect. */
  senders: Pick<SenderCheck, 'check'>
  addressOf: AddressOf
  /** Sites besides our own page that may connect. */
  allowedOrigins?: readonly string[]
  /** Reads the state of a session, and what the list shows about it. */
  directory: Pick<SessionDirectory, 'state' | 'summary'>
  inbox: Pick<ApprovalInbox, 'open'>
  progress: () => Progress
  onProgress: (listener: (progress: Progress) => void) => void
  /** Connects several instances; undefined if there is only one. */
  adapter?: ServerOptions['adapter'] | undefined
  /** The server is shutting down: nothing new is accepted. */
  isDraining: () => boolean
  /** Called for every connection and command that is answered with an error. */
  refused?: ReportRefusal
  limits: SocketLimits
  logger: Logger
}

interface SocketLimits {
  /** Limit for one session, over all its tabs. */
  commandsPerMinute: number
  messagesPerMinute: number
  /** Limit for one person: a browser, or all clients without a browser at one address. */
  connectionsPerMinute: number
  maxConnections: number
  /** Limit for one address: connections that have not been admitted yet. */
  maxPendingConnections: number
}

export type Io = Server<ClientToServer, ServerToClient, BetweenInstances, SocketData>
export type ClientSocket = Socket<ClientToServer, ServerToClient, BetweenInstances, SocketData>

interface BetweenInstances {
  /** A client of this session has connected elsewhere. */
  retell: (sessionId: string) => void
}

interface SocketData {
  sessionId: string
  token?: string
  /** The last event of the session's log that it was sent. */
  sent?: number
  /** The name of the browser's owner. */
  owner?: string
}
