/** `audit` shows and verifies the audit log. It reads files and the bucket only, so it works with and without a running server. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { dataPaths } from '../app/data-paths.ts'
import type { Settings } from '../config/settings.ts'
import { sayWhatIsUsed, userDefaults } from '../config/user-folders.ts'
import type { AuditSource } from './audit-show.ts'
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
  mainSettings: ['DATA_DIR', 'CHECKPOINT_STORE'],
  // Use the data of `serve` if it runs in this folder, otherwise the folder of the stdio gateway.
  defaults: (env) => (existsSync('mcp.json') || existsSync('data/audit') ? {} : userDefaults(env)),
  async run(settings, { words: [action = 'show'], flags, isNamed }) {
    sayWhatIsUsed(settings, (setting) => setting !== 'DATA_DIR' || isNamed(setting))
    // Loaded on demand: the gateway shares this bundle and must start fast.
    const { showAudit } = await import('./audit-show.ts')
    return showAudit(await openSource(settings), action, flags)
  }
}

/** The log of this machine, and with a bucket, those of all instances. */
async function openSource(settings: Settings): Promise<AuditSource> {
  const { audit: dir, auditCopies, root } = dataPaths(settings.DATA_DIR)
  if (!settings.CHECKPOINT_STORE) return { dir }
  const [{ openBucket }, { openAuditSink }, { createLogger }] = await Promise.all([
    import('../app/open-checkpoints.ts'),
    import('../app/app-audit.ts'),
    import('../lib/logger.ts')
  ])
  const logger = createLogger('silent')
  const bucket = await openBucket(settings, logger)
  const sink = await openAuditSink(settings, bucket, logger)
  if (!bucket || !sink) return { dir }
  return {
    dir,
    shared: {
      copies: auditCopies,
      where: settings.CHECKPOINT_STORE,
      sync: async () => void (await sink.mirror.sync()),
      async verify() {
        const { verifyBucket } = await import('../audit/bucket/verify-bucket.ts')
        const { objects, prefix } = bucket
        return verifyBucket({ objects, prefix, own: dir, work: join(root, `audit-verify-${randomUUID()}`) })
      }
    }
  }
}
