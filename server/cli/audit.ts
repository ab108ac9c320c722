/** `audit` shows and verifies the audit log. It reads the files only, so it works with and without a running server. */
import { existsSync } from 'node:fs'
import { dataPaths } from '../app/data-paths.ts'
import { sayWhatIsUsed, userDefaults } from '../config/user-folders.ts'
import type { Command } from './command.ts'

export const auditCommand: Command = {
  name: 'audit',
  summary: 'show the audit log of requests and calls, or verify that nobody changed it',
  usage: [
    '[--limit N] [--follow]            show the last rows, oldest first',
    'verify                            check the hash chains and show where one is broken'
  ],
  flags: {
    json: { type: 'boolean', help: 'print JSON, one object per line' },
    follow: { type: 'boolean', help: 'keep printing new rows' },
    limit: { type: 'string', help: 'maximum number of rows (20)' },
    server: { type: 'string', help: 'only rows of this server' },
    tool: { type: 'string', help: 'only rows of this tool' },
    outcome: {
      type: 'string',
      help: 'only rows with this outcome: ok, tool_error, refused, failed, cancelled, unknown, …'
    },
    since: { type: 'string', help: 'only rows since this time, or of this age, such as 30m, 2h, 7d' }
  },
  mainSettings: ['DATA_DIR'],
  // Use the data of `serve` if it runs in this folder, otherwise the folder of the stdio gateway.
  defaults: (env) => (existsSync('mcp.json') || existsSync('data/audit') ? {} : userDefaults(env)),
  async run(settings, { words: [action = 'show'], flags, isNamed }) {
    sayWhatIsUsed(settings, (setting) => setting !== 'DATA_DIR' || isNamed(setting))
    // Loaded on demand: the gateway shares this bundle and must start fast.
    const { showAudit } = await import('./audit-show.ts')
    return showAudit(dataPaths(settings.DATA_DIR).audit, action, flags)
  }
}
