/** Startup and shutdown of an instance. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Progress } from '../../contract/live.ts'
import type { Drain } from '../http/drain.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { backoffMs } from '../lib/waiting/backoff.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import type { ProgressBoard } from '../lib/waiting/progress-board.ts'
import type { SandboxEngine } from '../sandbox/port.ts'

/** Maximum time of each step before the files are saved. Later steps are limited by the deadline of the process. */
const STEP_MS = 6_000
/** Deadline for saving, from the beginning of the shutdown. The rest of the 30 seconds is for closing the audit log, HTTP and the store. */
const SAVED_WITHIN_MS = 26_000
/** How long open requests may take during shutdown. */
const REQUEST_GRACE_MS = 5_000

interface Preparing {
  engine: SandboxEngine
  progress: ProgressBoard<Progress['stage']>
  sessions: { sweep(): Promise<void> }
}

/**
 * Runs in the background for as long as it takes. Meanwhile the page is served, and reports that the engine or image is missing.
 * First removes what dead instances have left; until then this instance is not ready.
 */
export async function prepareEngine(core: Preparing, logger: Logger, signal: AbortSignal): Promise<void> {
  const { engine, progress, sessions } = core
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      await sessions.sweep()
      await engine.ensureImage((line) => {
        logger.info(line)
        progress.say('image', line)
      })
      progress.say('ready', 'Ready')
      return
    } catch (error) {
      if (attempt === 1) logger.error({ err: error }, `The sandbox engine or image is not ready: ${messageOf(error)}`)
      progress.say('engine', messageOf(error))
      await delay(backoffMs(attempt, { firstMs: 1000, maxMs: 30_000 }), undefined, { signal, ref: false }).catch(
        () => {}
      )
    }
  }
}

/** The parts that a shutdown uses. */
interface AppParts {
  http: { drain: Drain; close(): Promise<void> }
  providers: { stop(): void }
  inbox: { leave(): Promise<void> }
  chat: { stop(hurry?: AbortSignal): Promise<void> }
  directory: { deleted: { stop(): Promise<void> } }
  sockets: { close(): Promise<void> }
  door: { close(): Promise<void> }
  gateway: { stop(): Promise<void> }
  auditLog: { close(): Promise<void> }
  live: { close(): void } | undefined
  core: { stop(): Promise<void>; sessions: { stop(withinMs: number): Promise<void> } }
  logger: Logger
}

/** Accepts nothing new, lets requests and turns end, saves files. `/readyz` answers 503 until HTTP is closed at the end. */
export async function stopApp(parts: AppParts, hurry?: AbortSignal): Promise<void> {
  const { http, providers, inbox, chat, directory, sockets, door, gateway, auditLog, live, core, logger } = parts
  const step = shutdownStep(logger)
  const saveBy = performance.now() + SAVED_WITHIN_MS
  http.drain.begin()
  providers.stop()
  const requests = step('answer open requests', () => http.drain.finish(REQUEST_GRACE_MS, hurry))
  await Promise.all([
    requests,
    step('leave the inbox', () => inbox.leave()),
    step('stop turns', () => chat.stop(hurry)),
    step('finish deletions', () => directory.deleted.stop())
  ])
  await step('close the live channel', () => sockets.close())
  const saveMs = Math.max(0, saveBy - performance.now())
  const servers = step('stop MCP servers', () => door.close().then(() => gateway.stop()), saveMs)
  await Promise.all([servers, step('save files', () => core.sessions.stop(saveMs), saveMs + STEP_MS)])
  await step('close the audit log', () => auditLog.close())
  live?.close()
  await step('close HTTP', () => http.close())
  await step('close the store', () => core.stop())
}

/** Runs one step of a shutdown. If it fails or takes too long, this is logged and the next step follows, because files must be saved. */
function shutdownStep(logger: Logger): (what: string, job: () => Promise<void>, ms?: number) => Promise<void> {
  return async (what, job, ms = STEP_MS) => {
    try {
      await withDeadline({ what: `the shutdown to ${what}`, ms }, job)
    } catch (error) {
      logger.warn({ err: error }, `Shutdown could not ${what}: ${messageOf(error)}`)
    }
  }
}
