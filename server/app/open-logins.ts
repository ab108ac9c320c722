import type { Settings } from '../config/settings.ts'
import type { SharedLogins } from '../connections/remote/shared-logins.ts'
import type { Logger } from '../lib/logger.ts'
import type { StoreFormat } from '../storage/format/store-format.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { dataPaths } from './data-paths.ts'

/** Versions before it look for logins in the data folder only. */
const LOGINS_FORMAT = 1

/** The logins that all instances on a Redis use. Returns undefined if the logins are files of this machine. */
export async function openLogins(
  settings: Settings,
  { keyValues, format }: { keyValues: KeyValueStore; format?: StoreFormat | undefined },
  logger: Logger
): Promise<SharedLogins | undefined> {
  const { REDIS_URL, SECRETS_KEY: key, SECRETS_KEY_BEFORE: before, DATA_DIR } = settings
  if (!REDIS_URL || !key) return undefined
  const [{ openSharedLogins }, { Sealer }] = await Promise.all([
    import('../connections/remote/shared-logins.ts'),
    import('../lib/sealing.ts')
  ])
  const sealer = new Sealer([key, ...(before ? [before] : [])], 'logins')
  const mayWrite = () => format?.mayWrite(LOGINS_FORMAT) ?? Promise.resolve(true)
  return openSharedLogins({ keyValues, sealer, logger, dir: dataPaths(DATA_DIR).logins, mayWrite })
}
