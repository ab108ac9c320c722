import { createAdapter } from '@socket.io/redis-streams-adapter'
import { Redis } from 'ioredis'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import { isReplica } from './redis-client.ts'
import { DEFAULT_DEPLOYMENT, deploymentPrefix } from './redis-keys.ts'

/** What was missed for longer is read from the log; the stream only carries it over. */
const MAX_LENGTH = 1000
const KEEP_MS = 60_000
const BEAT_MS = 2000
const CONNECT_TIMEOUT_MS = 3000
/** The beat asks for an answer every two seconds; a reader has one at the latest when its read of five seconds ends. */
const SILENCE_MS = 8000

export interface SocketAdapterOptions {
  url: string
  logger: Logger
  keepMs?: number
  /** The deployment's name: instances of others are not heard. */
  deployment?: string
}

export interface SocketAdapter {
  /** For the Socket.IO server's `adapter`. */
  adapter: ReturnType<typeof createAdapter>
  /** After the Socket.IO server is closed. */
  close(): void
}

/** Carries what one instance sends to a room to the tabs of every other. Its readers block, so it has connections of its own. */
export function openSocketAdapter(options: SocketAdapterOptions): SocketAdapter {
  const { url, logger, keepMs = KEEP_MS, deployment = DEFAULT_DEPLOYMENT } = options
  const stream = `${deploymentPrefix(deployment)}socket-stream`
  const redis = new Redis(url, {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // A peer that vanished without a word would leave every tab without news, those of this instance too.
    socketTimeout: SILENCE_MS,
    // The reader asks again at once when it is refused: it must wait for the connection instead.
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    reconnectOnError: isReplica,
    retryStrategy: (attempt) => backoffMs(attempt, { firstMs: 50, maxMs: 2000 })
  })
  redis.on('error', (error: Error) => logger.debug({ reason: error.message }, 'The live channel waits for Redis.'))
  const readers = rememberDuplicates(redis)
  // Channels are shared by all databases of a Redis, streams are not.
  const channelPrefix = `${stream}:${redis.options.db ?? 0}`
  const timer = setInterval(() => {
    if (redis.status === 'ready') beat(redis, stream, keepMs).catch(() => {})
  }, BEAT_MS)
  timer.unref()
  return {
    adapter: createAdapter(redis, { streamName: stream, channelPrefix, maxLen: MAX_LENGTH, onlyPlaintext: true }),
    close() {
      clearInterval(timer)
      for (const client of [redis, ...readers]) client.disconnect()
    }
  }
}

/**
 * A reader that has read nothing yet begins anew with every read, and would miss what comes in between. What all have read goes
 * first: a few results of tools can fill a Redis, and a full one takes no beat.
 */
async function beat(redis: Redis, stream: string, keepMs: number): Promise<void> {
  const [seconds] = await redis.time()
  await redis.xtrim(stream, 'MINID', Math.max(0, Number(seconds) * 1000 - keepMs))
  await redis.xadd(stream, 'MAXLEN', '~', MAX_LENGTH, '*', 'beat', '1')
}

/** The adapter makes its readers itself, and leaves them waiting. */
function rememberDuplicates(redis: Redis): Redis[] {
  const made: Redis[] = []
  const duplicate = redis.duplicate.bind(redis)
  redis.duplicate = (override) => {
    const copy = duplicate(override)
    // It looks at no answer to its subscription, which is cut off when a server stops before it came.
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
