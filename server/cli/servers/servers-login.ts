import { spawn } from 'node:child_process'
import { dataPaths } from '../../app/data-paths.ts'
import type { RemoteEntry } from '../../catalog/server-entry.ts'
import { AppError } from '../../lib/errors.ts'
import { SYSTEM_PATH } from '../../lib/system-path.ts'
import { chosen, oneName, print, type ServersContext } from './servers-context.ts'

const WAIT_MS = 300_000

/** Lets the user log in with a browser, and stores the tokens for this server and owner. */
export async function loginServer(context: ServersContext): Promise<number> {
  const { name, url } = oneRemote(context)
  const { oauthLogin } = await import('../../connections/remote/oauth-login.ts')
  const login = await oauthLogin({ server: name, url, show: showUrl, waitMs: WAIT_MS })
  const { logins, owner } = await openLogins(context)
  logins.write(name, owner, login)
  print(context, { server: name, loggedIn: true, issuer: login.issuer }, [
    `Logged in to "${name}" at ${login.issuer}${owner === '' ? '' : ` for ${owner}`}.`
  ])
  return 0
}

export async function logoutServer(context: ServersContext): Promise<number> {
  const name = oneName(context)
  const { logins, owner } = await openLogins(context)
  const was = logins.remove(name, owner)
  print(context, { server: name, loggedOut: was }, [
    was ? `Logged out of "${name}": its tokens were deleted on this machine.` : `There was no login to "${name}".`
  ])
  return 0
}

async function openLogins({ settings, flags }: ServersContext) {
  const { COMMON, Logins } = await import('../../connections/remote/logins.ts')
  const logins = new Logins(dataPaths(settings.DATA_DIR).logins)
  return { logins, owner: typeof flags.owner === 'string' ? flags.owner : COMMON }
}

function oneRemote(context: ServersContext): RemoteEntry {
  oneName(context)
  const [entry] = chosen(context)
  if (entry?.kind === 'remote') return entry
  throw new AppError('invalid', 'usage', `"${entry?.name}" is a local server: only remote servers need a login.`)
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
