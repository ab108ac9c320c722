import { setTimeout as delay } from 'node:timers/promises'
import { Redis, ReplyError } from 'ioredis'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { LoopLag } from '../../lib/waiting/loop-lag.ts'
import { storeUnavailable } from '../store-errors.ts'
import type { Script } from './scripts.ts'

const COMMAND_TIMEOUT_MS = 3000
const OPEN_TIMEOUT_MS = 5000
const LOG_EVERY_MS = 30_000
/** Error replies that depend on Redis's state and not on our command. They are temporary. */
const STATE_REPLIES =
  /^(LOADING|OOM|READONLY|MISCONF|BUSY|NOAUTH|WRONGPASS|NOPERM|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|TRYAGAIN)\b/

/**
 * One connection that reconnects forever. While it is down every call fails at once; nothing is queued and nothing is sent twice.
 */
export class RedisClient {
  readonly #redis: Redis
  readonly #where: string
  readonly #lag: LoopLag

  constructor(redis: Redis, where: string, lag: LoopLag) {
    this.#redis = redis
    this.#where = where
    this.#lag = lag
  }

  async run(script: Script, keys: string[], args: (string | number)[] = []): Promise<unknown> {
    try {
      return await this.#evaluate(script, keys, args)
    } catch (error) {
      throw translate(error, this.#where, this.#lag)
    }
  }

  async #evaluate(script: Script, keys: string[], args: (string | number)[]): Promise<unknown> {
    try {
      return await this.#redis.evalsha(script.sha, keys.length, ...keys, ...args)
    } catch (error) {
      // A restarted Redis has lost its scripts. It refused this one before running it, so we can send it again.
      if (!messageOf(error).startsWith('NOSCRIPT')) throw error
      return await this.#redis.eval(script.lua, keys.length, ...keys, ...args)
    }
  }

  async close(): Promise<void> {
    this.#lag.stop()
    if (this.#redis.status === 'ready') await this.#redis.quit().catch(() => {})
    this.#redis.disconnect()
  }
}

export async function connectRedis(url: string, logger: Logger): Promise<RedisClient> {
  const where = describe(url)
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: COMMAND_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // If the peer disappears silently, close the socket soon after the first command without a response.
    socketTimeout: COMMAND_TIMEOUT_MS + 1000,
    enableOfflineQueue: false,
    // A command whose response was lost may have run; sending it again would append twice.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    reconnectOnError: isReplica,
    retryStrategy: (attempt) => backoffMs(attempt, { firstMs: 50, maxMs: 2000 })
  })
  redis.on('error', () => {}) // without a listener, ioredis would print the error
  try {
    await withDeadline({ what: `Redis at ${where}`, ms: OPEN_TIMEOUT_MS }, () => open(redis))
  } catch (error) {
    redis.disconnect()
    if (error instanceof ReplyError && /\bDB index\b|\bSELECT\b/i.test(messageOf(error))) {
      const message = `Redis at ${where} has no database ${redis.options.db} (${messageOf(error)}); correct REDIS_URL.`
      throw new AppError('invalid', 'invalid_redis_url', message, { cause: plain(error) })
    }
    throw storeUnavailable(
      `Redis at ${where} does not answer (${reasonOf(error)}); start it, correct REDIS_URL, or unset it.`,
      plain(error)
    )
  }
  const lag = new LoopLag()
  reportState(redis, where, logger, lag)
  return new RedisClient(redis, where, lag)
}

export interface Patience {
  /** How long to retry a Redis that does not respond. */
  ms: number
  /** Ends the wait. */
  signal?: AbortSignal | undefined
}

/** For startup, when Redis may be starting too. Errors that a retry can't fix, such as a wrong password, fail at once. */
export async function connectRedisWithRetries(url: string, logger: Logger, patience: Patience): Promise<RedisClient> {
  const until = performance.now() + patience.ms
  for (let attempt = 1; ; attempt++) {
    try {
      return await connectRedis(url, logger)
    } catch (error) {
      const leftMs = until - performance.now()
      if (!isAppError(error, 'store_unavailable') || leftMs <= 0 || isRefused(error.cause)) throw error
      const waitMs = Math.min(leftMs, backoffMs(attempt, { firstMs: 500, maxMs: 5000 }))
      const left = `Trying again for ${Math.ceil(leftMs / 1000)} s.`
      logger.warn({ redis: describe(url), attempt }, `Redis does not answer (${reasonOf(error.cause)}). ${left}`)
      await delay(waitMs, undefined, { signal: patience.signal }).catch(() => {})
      if (patience.signal?.aborted) throw error
    }
  }
}

const isRefused = (cause: unknown) => /^(NOAUTH|WRONGPASS|NOPERM)/.test(messageOf(cause))

/** After a failover the former primary keeps serving its connections; only a new connection leads to the new primary. */
export function isReplica(error: Error): boolean {
  return error.message.startsWith('READONLY')
}

/**
 * If Redis refuses the database, the client library silently continues in the first one, with somebody else's data. Check for
 * that.
 */
async function open(redis: Redis): Promise<void> {
  await redis.connect()
  if (redis.options.db) await redis.select(redis.options.db)
}

/** Logs once that Redis is down, repeats it rarely, and logs when it is back. */
function reportState(redis: Redis, where: string, logger: Logger, lag: LoopLag): void {
  let loggedAt = 0
  redis.on('error', (error: Error) => {
    if (Date.now() - loggedAt < LOG_EVERY_MS) return
    loggedAt = Date.now()
    logger.warn({ redis: where, reason: reasonOf(error, lag) }, 'Redis does not answer; retrying until it does.')
  })
  redis.on('ready', () => {
    if (loggedAt > 0) logger.info({ redis: where }, 'Redis answers again.')
    loggedAt = 0
  })
}

const LATE = 'it did not answer in time'
/** A process that stands still for longer misses answers. */
const BUSY_MS = 1000

const REASONS: [RegExp, string][] = [
  [/ECONNREFUSED/, 'the connection was refused'],
  [/ENOTFOUND|EAI_AGAIN/, 'its host name is unknown'],
  [/ETIMEDOUT|timed out|timeout/i, LATE],
  [/ECONNRESET|EPIPE|closed|writeable|max retries/i, 'the connection was lost'],
  [/^LOADING/, 'it is still loading its data'],
  [/^(NOAUTH|WRONGPASS)/, 'the password in REDIS_URL is wrong or missing'],
  [/^READONLY/, 'it is a replica at the moment']
]

/**
 * The reason in our own words, because the client library's texts are about its options. What Redis itself says begins with a
 * code.
 */
function reasonOf(error: unknown, lag?: LoopLag): string {
  const text = messageOf(error)
  const known = REASONS.find(([pattern]) => pattern.test(text))?.[1]
  const busyMs = lag?.recentMs ?? 0
  if (known === LATE && busyMs > BUSY_MS)
    return `no answer was read in time, but this server itself stood still for ${Math.round(busyMs)} ms`
  return known ?? (/^[A-Z]{2,} /.test(text) ? text : 'the connection failed')
}

/** Host, port and database, without the password. */
export function redisAddress(url: string): string {
  return `${describe(url)}/${Number(URL.parse(url)?.pathname.slice(1) || 0)}`
}

/** Host and port only: a URL may carry a password. */
function describe(url: string): string {
  const parsed = URL.parse(url)
  const isOne = parsed && ['redis:', 'rediss:'].includes(parsed.protocol) && /^(\/\d*)?$/.test(parsed.pathname)
  if (!isOne || parsed.hostname === '') {
    throw new AppError('invalid', 'invalid_redis_url', 'REDIS_URL must look like redis://host:6379/0.')
  }
  return `${parsed.hostname}:${parsed.port || 6379}`
}

function translate(error: unknown, where: string, lag: LoopLag): AppError {
  const reason = messageOf(error)
  if (error instanceof ReplyError && !STATE_REPLIES.test(reason)) {
    return new AppError('internal', 'store_failed', 'The session store refused a command.', {
      cause: plain(error),
      where: `Redis at ${where}`
    })
  }
  if (reason.startsWith('OOM')) {
    const message = 'The session store is full: delete sessions, or ask the operator to give it more memory.'
    return storeUnavailable(message, plain(error), `Redis at ${where}`)
  }
  const message = 'The session store does not answer; try again in a moment.'
  return storeUnavailable(message, plain(error), `Redis at ${where}: ${reasonOf(error, lag)}`)
}

/** The client library's errors contain the whole command, and with it what users wrote. Only their text may reach the logs. */
function plain(error: unknown): Error {
  return new Error(messageOf(error))
}
