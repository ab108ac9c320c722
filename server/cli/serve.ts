import { type App, createApp } from '../app.ts'
import { createLogger } from '../lib/logger.ts'
import type { Command } from './command.ts'
import { leaveSoon } from './leave-soon.ts'

export const serveCommand: Command = {
  name: 'serve',
  summary: 'the workspace: web page, API and sandboxes',
  async run(settings) {
    const logger = createLogger(settings.LOG_LEVEL)
    const stopped = Promise.withResolvers<void>()
    // A second signal while stopping is the user's impatience: then we go at once.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      let asked = false
      process.on(signal, () => {
        if (asked) process.exit(1)
        asked = true
        stopped.resolve()
      })
    }
    try {
      await runApp(await createApp(settings, logger, process.env), stopped.promise)
      return 0
    } finally {
      // Also when it did not start: a connection to Redis, open already, would keep a server alive that serves nobody.
      leaveSoon()
    }
  }
}

async function runApp(app: App, stopped: Promise<void>): Promise<void> {
  try {
    await app.start()
    process.stderr.write(`MCP Orchestrator is at ${app.url()}\n`)
    await stopped
    process.stderr.write('Stopping: saving files and removing sandboxes …\n')
  } finally {
    await app.stop()
  }
}
