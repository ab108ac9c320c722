import { randomUUID } from 'node:crypto'
import { type App, createApp } from '../app/app.ts'
import { registerServe } from '../app/gateway/registration.ts'
import type { Settings } from '../config/settings.ts'
import { isAppError } from '../lib/errors.ts'
import { createLogger } from '../lib/logger.ts'
import { flushRepeatedLines } from '../lib/repeated-lines.ts'
import type { Command } from './command.ts'
import { leaveSoon } from './leave-soon.ts'
import { listenForStop, type StopSignals } from './stop-signals.ts'

/** Maximum time from the first signal to the end of the process. */
const STOP_WITHIN_MS = 30_000
/** The same after a second signal. */
const HURRY_WITHIN_MS = 3_000
const MAX_NAMED = 10
/** A sandbox that nobody is connected to ends by itself after this time. */
const KEPT_MINUTES = 30
/** Redis may have been started together with this server. */
const REDIS_WAIT_MS = 60_000

export const serveCommand: Command = {
  name: 'serve',
  summary: 'start the workspace: web page, API, sandboxes, and the gateway at /mcp',
  logsJson: true,
  flags: {
    'accept-data-dir': {
      type: 'boolean',
      help: 'confirm once that DATA_DIR is the right folder for this Redis, although it looks wrong'
    }
  },
  async run(settings, { flags }) {
    const logger = createLogger(settings.LOG_LEVEL)
    const signals = listenForStop()
    const instanceId = randomUUID()
    const announce = announcer(instanceId)
    const patience = { ms: REDIS_WAIT_MS, signal: signals.stopping }
    const start = { patience, instanceId, acceptDataDir: flags['accept-data-dir'] === true }
    try {
      return await runApp(await createApp(settings, logger, process.env, start), settings, signals, announce)
    } catch (error) {
      if (!signals.stopping.aborted || !isAppError(error, 'store_unavailable')) throw error
      announce('Stopped before it was ready.')
      return 0
    } finally {
      // Also after a failed start: an open connection to Redis would keep the process alive.
      leaveSoon()
    }
  }
}

type Announce = (sentence: string, fields?: Record<string, unknown>, level?: 'info' | 'warn' | 'error') => void

/** Writes messages for a person to stderr: as text to a terminal, otherwise as JSON lines. */
function announcer(instance: string): Announce {
  if (process.stderr.isTTY) return (sentence) => void process.stderr.write(`${sentence}\n`)
  const logger = createLogger('info').child({ instance })
  return (sentence, fields = {}, level = 'info') => logger[level](fields, sentence)
}

async function runApp(app: App, settings: Settings, signals: StopSignals, announce: Announce): Promise<number> {
  let seconds = 0
  let unregister = () => {}
  const started = app.start().then(() => {
    // From now on, the stdio gateway of this user finds it.
    unregister = registerServe(settings, process.env)
    announce(`MCP Orchestrator is at ${app.url()}`, { url: app.url() })
  })
  try {
    // Signals also work during startup.
    await Promise.race([started, signals.stop])
    await signals.stop
    announce('Stopping: saving files and removing sandboxes …')
  } finally {
    started.catch(() => {})
    unregister()
    seconds = await stopInTime(app, signals, announce)
  }
  const isSaved = app.ending().unsaved.length === 0
  const level = isSaved ? (app.ending().left > 0 ? 'warn' : 'info') : 'error'
  flushRepeatedLines()
  announce(`Stopped.${leftBehind(app)}${notSaved(app)}`, { seconds, ...app.ending() }, level)
  return isSaved ? 0 : 1
}

/** The process ends at the deadline even when something never answers. Returns how many seconds the shutdown took. */
async function stopInTime(app: App, { hurry, atOnce }: StopSignals, announce: Announce): Promise<number> {
  const begun = performance.now()
  const seconds = () => Math.round(performance.now() - begun) / 1000
  const leave = (why: string) => {
    flushRepeatedLines()
    announce(`Not stopped cleanly: ${why}.${notSaved(app)}`, { seconds: seconds(), ...app.ending() }, 'error')
    process.exit(1)
  }
  const late = `it took more than ${STOP_WITHIN_MS / 1000} seconds`
  const timer = setTimeout(leave, STOP_WITHIN_MS, late)
  hurry.addEventListener('abort', () => {
    announce(`Hurrying: the server stops within ${HURRY_WITHIN_MS / 1000} seconds; one more signal stops it at once.`)
    setTimeout(leave, HURRY_WITHIN_MS, 'a second signal asked to hurry').unref()
  })
  atOnce.addEventListener('abort', () => leave('a third signal asked to end at once'))
  try {
    await app.stop(hurry)
  } finally {
    clearTimeout(timer)
  }
  return seconds()
}

function leftBehind(app: App): string {
  const { left: all, unsaved } = app.ending()
  // Those with unsaved changes are named in the next sentence.
  const left = all - unsaved.length
  if (left <= 0) return ''
  return ` ${left} ${left === 1 ? 'sandbox' : 'sandboxes'} could not be removed: the next start removes what is no longer needed.`
}

function notSaved(app: App): string {
  const ids = app.ending().unsaved
  if (ids.length === 0) return ''
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : ''
  const which = `${ids.slice(0, MAX_NAMED).join(', ')}${more}`
  return ` Changes since the last finished call may not be saved in: ${which}. Their sandboxes are kept with all files for ${KEPT_MINUTES} minutes. Start the server again in that time to save them, and don't remove the sandboxes or restart the container engine before.`
}
