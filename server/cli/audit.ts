/** `audit`: what was asked, chosen and run, from the files alone; works beside a running server, and without one. */
import { existsSync } from 'node:fs'
import { dataPaths } from '../app/data-paths.ts'
import type { Command } from './command.ts'
import { sayWhatIsUsed, userDefaults } from './user-folders.ts'

export const auditCommand: Command = {
  name: 'audit',
  summary: 'what was asked, chosen and run; and whether anyone has changed the record of it',
  usage: [
    '[--limit N] [--follow]            the last rows, oldest first',
    'verify                            checks the chains of rows; says where one is broken'
  ],
  flags: {
    json: { type: 'boolean', help: 'prints JSON, one object per line' },
    follow: { type: 'boolean', help: 'goes on with what comes' },
    limit: { type: 'string', help: 'rows at most (20)' },
    server: { type: 'string', help: 'of this server only' },
    tool: { type: 'string', help: 'of this tool only' },
    outcome: { type: 'string', help: 'ok, tool_error, refused, failed, cancelled, unknown, abstained, …' },
    since: { type: 'string', help: 'a time, or an age such as 30m, 2h, 7d' }
  },
  mainSettings: ['DATA_DIR'],
  // Where `serve` runs there is its data; else the stdio gateway's folder.
  defaults: (env) => (existsSync('mcp.json') || existsSync('data/audit') ? {} : userDefaults(env)),
  async run(settings, { words: [action = 'show'], flags, isNamed }) {
    sayWhatIsUsed(settings, (setting) => setting !== 'DATA_DIR' || isNamed(setting))
    // The gateway shares this bundle, and does not wait for what only this command needs.
    const { showAudit } = await import('./audit-show.ts')
    return showAudit(dataPaths(settings.DATA_DIR).audit, action, flags)
  }
}
