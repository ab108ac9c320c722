import { createAdapter } from '@socket.io/redis-streams-adapter'
import { Redis } from 'ioredis'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import { isReplica } from './redis-client.ts'
import { DEFAULT_DEPLOYMENT, deploymentPrefix } from './redis-keys.ts'

/** The stream only bridges short gaps; what is older is read from the event log. */
const MAX_LENGTH = 1000
const KEEP_MS = 60_000
const BEAT_MS = 2000
const CONNECT_TIMEOUT_MS = 3000
/** The heartbeat expects a response every two seconds; a reader gets one at the latest when its read of five seconds ends. */
const SILENCE_MS = 8000

export interface SocketAdapterOptions {
  url: string
  logger: Logger
  keepMs?: number
  /** The deployment's name. Other deployments' instances are not heard. */
  deployment?: string
}

export interface SocketAdapter {
  /** For the Socket.IO server's `adapter`. */
  adapter: ReturnType<typeof createAdapter>
  /** Call this after the Socket.IO server is closed. */
  close(): void
}

/**
 * Sends what one instance emits to a room to the tabs of all other instances. Its readers block, so it has its own connections.
 */
export function openSocketAdapter(options: SocketAdapterOptions): SocketAdapter {
  const { url, logger, keepMs = KEEP_MS, deployment = DEFAULT_DEPLOYMENT } = options
  const stream = `${deploymentPrefix(deployment)}socket-stream`
  const redis = new Redis(url, {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // If the peer disappeared silently, all tabs would stay without news, including those of this instance.
    socketTimeout: SILENCE_MS,
    // A reader that is refused asks again at once, so let it wait for the connection instead.
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    reconnectOnError: isReplica,
    retryStrategy: (attempt) => backoffMs(attempt, { firstMs: 50, maxMs: 2000 })
  })
  redis.on('error', (error: Error) => logger.debug({ reason: error.message }, 'The live channel waits for Redis.'))
  const readers = trackDuplicates(redis)
  // All databases of a Redis share channels, but not streams.
  const channelPrefix = `${stream}:${redis.options.db ?? 0}`
  const timer = setInterval(() => {
    if (redis.status === 'ready') writeHeartbeat(redis, stream, keepMs).catch(() => {})
  }, BEAT_MS).unref()
  return {
    adapter: createAdapter(redis, { streamName: stream, channelPrefix, maxLen: MAX_LENGTH, onlyPlaintext: true }),
    close() {
      clearInterval(timer)
      for (const client of [redis, ...readers]) client.disconnect()
    }
  }
}

/**
 * A reader that has read nothing yet starts anew with every read and would miss what comes in between. So we write a heartbeat,
 * and first remove what everyone has read: a few tool results can fill a Redis, and a full one accepts no heartbeat.
 */
async function writeHeartbeat(redis: Redis, stream: string, keepMs: number): Promise<void> {
  const [seconds] = await redis.time()
  await redis.xtrim(stream, 'MINID', Math.max(0, Number(seconds) * 1000 - keepMs))
  await redis.xadd(stream, 'MAXLEN', '~', MAX_LENGTH, '*', 'beat', '1')
}

/** The adapter creates its own readers and never closes them. */
function trackDuplicates(redis: Redis): Redis[] {
  const made: Redis[] = []
  const duplicate = redis.duplicate.bind(redis)
  redis.duplicate = (override) => {
    const copy = duplicate(override)
    // The adapter ignores the response to its subscription, which fails if a server stops before it arrives.
    const send = copy.sendCommand.bind(copy)
    copy.sendCommand = (command, stream) => {
      command.promise.catch(() => {})
      return send(command, stream)
    }
    made.push(copy)
    return copy
  }
  return made
}
