import { createAdapter } from '@socket.io/redis-streams-adapter'
import { Redis } from 'ioredis'
import { backoffMs } from '../../lib/backoff.ts'
import type { Logger } from '../../lib/logger.ts'
import { isReplica } from './redis-client.ts'

const STREAM = 'mcpo:socket-stream'
/** What was missed for longer is read from the log; the stream only carries it over. */
const MAX_LENGTH = 1000
const BEAT_MS = 2000
const CONNECT_TIMEOUT_MS = 3000

export interface SocketAdapter {
  /** For the Socket.IO server's `adapter`. */
  adapter: ReturnType<typeof createAdapter>
  /** After the Socket.IO server is closed. */
  close(): void
}

/** Carries what one instance sends to a room to the tabs of every other. Its readers block, so it has connections of its own. */
export function openSocketAdapter({ url, logger }: { url: string; logger: Logger }): SocketAdapter {
  const redis = new Redis(url, {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // The reader asks again at once when it is refused: it must wait for the connection instead.
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    reconnectOnError: isReplica,
    retryStrategy: (attempt) => backoffMs(attempt, { firstMs: 50, maxMs: 2000 })
  })
  redis.on('error', (error: Error) => logger.debug({ reason: error.message }, 'The live channel waits for Redis.'))
  const readers = rememberDuplicates(redis)
  // Channels are shared by all databases of a Redis, streams are not.
  const channelPrefix = `${STREAM}:${redis.options.db ?? 0}`
  // A reader that has read nothing yet begins anew with every read, and would miss what comes in between.
  const beat = () => void redis.xadd(STREAM, 'MAXLEN', '~', MAX_LENGTH, '*', 'beat', '1').catch(() => {})
  const timer = setInterval(beat, BEAT_MS)
  timer.unref()
  return {
    adapter: createAdapter(redis, { streamName: STREAM, channelPrefix, maxLen: MAX_LENGTH, onlyPlaintext: true }),
    close() {
      clearInterval(timer)
      for (const client of [redis, ...readers]) client.disconnect()
    }
  }
}

/** The adapter makes its readers itself, and leaves them waiting. */
function rememberDuplicates(redis: Redis): Redis[] {
  const made: Redis[] = []
  const duplicate = redis.duplicate.bind(redis)
  redis.duplicate = (override) => {
    const copy = duplicate(override)
    made.push(copy)
    return copy
  }
  return made
}
