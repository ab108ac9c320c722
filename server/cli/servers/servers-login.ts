import { spawn } from 'node:child_process'
import { dataPaths } from '../../app/data-paths.ts'
import type { RemoteEntry } from '../../catalog/server-entry.ts'
import type { Logins } from '../../connections/remote/logins.ts'
import { SYSTEM_PATH } from '../../lib/system-path.ts'
import { usageError } from '../usage-error.ts'
import { chosen, oneName, print, type ServersContext } from './servers-context.ts'

const WAIT_MS = 300_000

/** Lets the user log in with a browser, and stores the tokens for this server and owner. */
export async function loginServer(context: ServersContext): Promise<number> {
  const { name, url } = oneRemote(context)
  const { oauthLogin } = await import('../../connections/remote/oauth-login.ts')
  const login = await oauthLogin({ server: name, url, show: showUrl, waitMs: WAIT_MS })
  await withLogins(context, ({ logins, owner }) => logins.write(name, owner, login))
  const owner = ownerOf(context)
  print(context, { server: name, loggedIn: true, issuer: login.issuer }, [
    `Logged in to "${name}" at ${login.issuer}${owner === '' ? '' : ` for ${owner}`}.`
  ])
  return 0
}

export async function logoutServer(context: ServersContext): Promise<number> {
  const name = oneName(context)
  const was = await withLogins(context, ({ logins, owner }) => logins.remove(name, owner))
  print(context, { server: name, loggedOut: was }, [
    was ? `Logged out of "${name}": its tokens were deleted here.` : `There was no login to "${name}".`
  ])
  return 0
}

/** In the store that the instances share, if they do; otherwise in the data folder. */
async function withLogins<T>(
  context: ServersContext,
  job: (opened: { logins: Logins; owner: string }) => Promise<T>
): Promise<T> {
  const { settings } = context
  const { Logins: Opened } = await import('../../connections/remote/logins.ts')
  const owner = ownerOf(context)
  if (!settings.REDIS_URL || !settings.SECRETS_KEY) {
    return job({ logins: new Opened(dataPaths(settings.DATA_DIR).logins), owner })
  }
  const [{ openStore }, { openLogins }, { createLogger }, { StoreFormat }] = await Promise.all([
    import('../../app/open-store.ts'),
    import('../../app/open-logins.ts'),
    import('../../lib/logger.ts'),
    import('../../storage/format/store-format.ts')
  ])
  const logger = createLogger('silent')
  const store = await openStore(settings, logger)
  const shared = await openLogins(settings, { ...store, format: new StoreFormat(store) }, logger)
  try {
    return await job({ logins: new Opened(shared ?? dataPaths(settings.DATA_DIR).logins), owner })
  } finally {
    shared?.close()
    await store.close()
  }
}

function ownerOf({ flags }: ServersContext): string {
  return typeof flags.owner === 'string' ? flags.owner : ''
}

function oneRemote(context: ServersContext): RemoteEntry {
  oneName(context)
  const [entry] = chosen(context)
  if (entry?.kind === 'remote') return entry
  throw usageError(`"${entry?.name}" is a local server: only remote servers need a login.`)
}

function showUrl(url: URL): void {
  process.stderr.write(`Open this address in a browser and log in:\n${url.href}\n`)
  if (!process.stdout.isTTY) return
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open'
  // The system's own program comes first; the browser that it starts may be anywhere.
  const env = { ...process.env, PATH: `${SYSTEM_PATH}:${process.env.PATH ?? ''}` }
  const child = spawn(opener, [url.href], { stdio: 'ignore', detached: true, env })
  child.on('error', () => {})
  child.unref()
}
