/** `migrate` moves an installation to another store while it is stopped. */

import { resolve } from 'node:path'
import { loadSettings } from '../config/load-settings.ts'
import type { Settings } from '../config/settings.ts'
import { AppError } from '../lib/errors.ts'
import { readSmallFile, whyUnreadable } from '../lib/files/read-small-file.ts'
import { createLogger } from '../lib/logger.ts'
import type { Command, CommandInput } from './command.ts'
import { say } from './command.ts'
import { usageError } from './usage-error.ts'

const MAX_FILE_BYTES = 1024 * 1024

export const migrateCommand: Command = {
  name: 'migrate',
  summary: 'move a stopped installation: folder or bucket, SQLite or Redis',
  flags: {
    from: { type: 'string', help: 'file with the settings of the installation as it is, like .env' },
    to: { type: 'string', help: 'file with the settings of the installation as it shall be' },
    'dry-run': { type: 'boolean', help: 'check both sides and count, but write nothing' }
  },
  mainSettings: [],
  ignoresDotenv: true,
  async run(_settings, { words, flags }) {
    if (words.length > 0) throw usageError('migrate takes no words', 'migrate')
    const [from, to] = [readSide(flags, 'from'), readSide(flags, 'to')]
    const { migrate } = await import('../app/migration/migrate.ts')
    const isDryRun = flags['dry-run'] === true
    await migrate({ from, to, isDryRun, say, logger: createLogger('silent') })
    return 0
  }
}

/** Only the file counts: the environment can't be right for both sides. */
function readSide(flags: CommandInput['flags'], side: 'from' | 'to'): Settings {
  const file = flags[side]
  if (typeof file !== 'string' || file === '') throw usageError(`--${side} must name a file with settings`, 'migrate')
  return loadSettings({ env: {}, dotenv: settingsIn(resolve(file), side) })
}

function settingsIn(path: string, side: 'from' | 'to'): string {
  try {
    return readSmallFile(path, MAX_FILE_BYTES)
  } catch (error) {
    throw new AppError('invalid', 'usage', `--${side}: ${path} can't be used: ${whyUnreadable(error)}.`, {
      cause: error
    })
  }
}
