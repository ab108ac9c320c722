/**
 * The places that no MCP server may change or see: everything that this start and the next one read or run, apart from the system's own
 * files. `child-covers.ts` decides how each of them is protected.
 */
import { existsSync, mkdirSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import type { Settings } from '../config/settings.ts'
import { userFolders, userHome } from '../config/user-folders.ts'
import { isWithin, type OurPlaces } from '../connections/local/child-covers.ts'
import { enginePlaces } from '../connections/local/engine-places.ts'
import { makeFolder } from '../lib/files/make-folder.ts'
import { packageRoot } from '../lib/files/package-root.ts'
import { dataPaths } from './data-paths.ts'
import { filesOfKubeconfig } from './engine/kubeconfig-files.ts'
import { findServe } from './gateway/registration.ts'

export interface PlacesOptions {
  environment: Record<string, string | undefined>
  /** The `.env` that settings were read from. */
  dotenv?: string | undefined
  /** Set if settings are read from the `.env` of the working folder. */
  readsDotenv?: boolean
  /** The folder of the store, if that is another one than DATA_DIR. */
  storeDir?: string | undefined
}

const PROGRAM = 'mcp-orchestrator'
/** The files of a checkout that `npm start`, `npm run setup`, `npm ci` and a build with Docker run or read. */
const OF_A_CHECKOUT = [
  ...['bin', 'dist', 'images', 'scripts', 'server', 'web', 'contract', 'workspace-server'],
  ...[
    'package.json',
    'package-lock.json',
    'npm-shrinkwrap.json',
    '.npmrc',
    'tsconfig.json',
    'vite.config.ts',
    'Dockerfile',
    'compose.yaml'
  ]
]

export function ourPlaces(
  settings: Settings,
  { dotenv, readsDotenv, environment, storeDir }: PlacesOptions
): OurPlaces {
  const { DATA_DIR, MCP_CONFIG, CREDENTIALS_FILE, AUTH_TOKEN } = settings
  const { root: dataDir, logins } = dataPaths(DATA_DIR)
  // Only existing files can be hidden.
  makeFolder(logins)
  const isEmpty = readsDotenv && statSync('.env', { throwIfNoEntry: false })?.size === 0
  const files = [MCP_CONFIG, isEmpty ? '.env' : dotenv].filter((file) => file !== undefined)
  const folders = Object.values(userFolders(environment))
  // Otherwise a server could put its own files there.
  for (const folder of folders) tryTo(() => makeFolder(folder))
  return {
    dataDir,
    files: files.map((file) => resolve(file)),
    credentialsFile: CREDENTIALS_FILE && resolve(CREDENTIALS_FILE),
    // On a personal machine, some servers use the engine.
    engines: AUTH_TOKEN === undefined ? [] : [...enginePlaces(environment), ...clusterPlaces(settings, environment)],
    userFolders: storeDir === undefined ? folders : [...folders, storeDir],
    runningServe: () => findServe(environment),
    programs: [...programsOf(packageRoot(), process.execPath), ...trustedFiles(settings, environment)],
    readableFile: readsDotenv ? resolve('.env') : undefined
  }
}

/** Prices decide how much a conversation may hold; certificates decide who gets the keys of providers. */
function trustedFiles(settings: Settings, environment: PlacesOptions['environment']): string[] {
  const files = [settings.MODEL_PRICES, environment.NODE_EXTRA_CA_CERTS, environment.SSL_CERT_FILE]
  return [...files.flatMap((file) => (file ? [resolve(file)] : [])), ...clusterPlaces(settings, environment)]
}

/**
 * The credentials for the cluster of the sandboxes: with them, a server could run commands in all of these. A kubeconfig can also name
 * other files, and a program, which our process then runs.
 */
function clusterPlaces({ SANDBOX_ENGINE, KUBECONFIG }: Settings, environment: PlacesOptions['environment']): string[] {
  if (SANDBOX_ENGINE !== 'kubernetes') return []
  const files = KUBECONFIG?.split(delimiter).filter(Boolean) ?? [join(userHome(environment), '.kube/config')]
  const own = files.map((file) => resolve(file))
  return ['/var/run/secrets/kubernetes.io', ...own, ...own.flatMap((file) => filesOfKubeconfig(file, environment.PATH))]
}

/** The files that `bin/mcp-orchestrator` runs, or would run if they existed, and the links that lead to them. */
export function programsOf(root: string, node: string, cwd = process.cwd()): string[] {
  const modules = join(root, 'node_modules')
  // Servers may use the rest of a checkout that this program was started in.
  const isUsed = isWithin(cwd, root)
  // npm would run what `.npmrc` names as its shell, and install what npm-shrinkwrap.json lists. It ignores them if they are empty.
  for (const name of isUsed ? ['.npmrc', 'npm-shrinkwrap.json'] : [])
    tryTo(() => writeFileSync(join(root, name), '', { flag: 'a' }))
  const own = isUsed
    ? [...OF_A_CHECKOUT.map((name) => join(root, name)).filter((path) => existsSync(path)), modules]
    : [root]
  const beside = dirname(root)
  const isInstalled = basename(beside) === 'node_modules'
  const otherNode = isInstalled && !existsSync(join(modules, 'node/bin/node')) ? [join(beside, 'node')] : []
  // Only what exists can be protected.
  for (const folder of [...(isUsed ? [modules] : []), ...otherNode]) tryTo(() => mkdirSync(folder))
  const commands = isInstalled ? [join(beside, '.bin'), join(beside, '../../bin')] : []
  const leadsHere = (folder: string) =>
    tryTo(() => realpathSync(join(folder, PROGRAM)) === realpathSync(join(root, 'bin', PROGRAM)))
  return [...own, ...otherNode, ...commands.filter(leadsHere), node]
}

/** If we are not allowed to, a server is not allowed to either. */
function tryTo<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}
