/**
 * How the stdio gateway finds the `serve` of the same user: `serve` writes one file into the user's own folder, which no MCP server can
 * see (`our-places.ts`). The gateway then uses its key-value store: tool index, learning and inbox. Chats, audit logs and logs stay
 * where they are. Invariant: only a running process of the same user, machine and program version is believed.
 */
import { randomUUID } from 'node:crypto'
import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processBirth } from '../../audit/process-birth.ts'
import type { Settings } from '../../config/settings.ts'
import { userFolders } from '../../config/user-folders.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { packageVersion } from '../../lib/files/package-version.ts'
import { readSmallFile } from '../../lib/files/read-small-file.ts'
import { isRecord } from '../../lib/is-record.ts'
import { parseHostileJson } from '../../lib/streams/hostile-json.ts'
import { dataPaths } from '../data-paths.ts'

type Environment = Record<string, string | undefined>

interface Registration {
  pid: number
  born: string
  boot: string
  version: string
  dataDir: string
}

const MAX_BYTES = 16 * 1024
const NOBODY = () => {}

/**
 * Returns a function that removes the registration. A server for several people, or with a Redis, registers nothing; nor does a second
 * one while the first still runs.
 */
export function registerServe(settings: Settings, environment: Environment): () => void {
  const { AUTH_TOKEN, REDIS_URL, DATA_DIR } = settings
  if (AUTH_TOKEN !== undefined || REDIS_URL || findServe(environment)) return NOBODY
  const { pid } = process
  const own: Registration = { ...thisMoment(pid), pid, version: packageVersion(), dataDir: dataPaths(DATA_DIR).root }
  const file = registrationFile(environment)
  const draft = `${file}.${randomUUID()}.new`
  try {
    makeFolder(userFolders(environment).data)
    writeFileSync(draft, JSON.stringify(own), { mode: 0o600, flag: 'wx' })
    renameSync(draft, file)
  } catch {
    // Everything else works without it: a read-only home is not a reason to stop.
    rmSync(draft, { force: true })
    return NOBODY
  }
  return () => {
    if (readRegistration(file)?.pid === pid) rmSync(file, { force: true })
  }
}

/** The data folder of this user's running `serve`, if there is one. */
export function findServe(environment: Environment): string | undefined {
  const found = readRegistration(registrationFile(environment))
  if (found === undefined || found.version !== packageVersion()) return undefined
  const { born, boot } = thisMoment(found.pid)
  if (born === '' || found.born !== born || found.boot !== boot) return undefined
  const isOwn = isMine(`/proc/${found.pid}`) && isMine(join(found.dataDir, 'store.db'))
  return isOwn ? found.dataDir : undefined
}

function registrationFile(environment: Environment): string {
  return join(userFolders(environment).data, 'serve.json')
}

/** Undefined also if anyone but this user could have written it. */
function readRegistration(file: string): Registration | undefined {
  try {
    const about = lstatSync(file)
    if (!about.isFile() || (about.mode & 0o077) !== 0 || !isMine(file) || !isMine(join(file, '..'))) return undefined
    const value = parseHostileJson(Buffer.from(readSmallFile(file, MAX_BYTES)))
    if (!isRecord(value)) return undefined
    const { pid, born, boot, version, dataDir } = value
    if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return undefined
    if (typeof dataDir !== 'string' || !dataDir.startsWith('/')) return undefined
    return { pid, born: String(born), boot: String(boot), version: String(version), dataDir }
  } catch {
    return undefined
  }
}

/** Belongs to this user, and others can't change it. */
function isMine(path: string): boolean {
  const about = lstatSync(path, { throwIfNoEntry: false })
  return about !== undefined && about.uid === process.getuid?.() && (about.mode & 0o022) === 0
}

/** Distinguishes a process from every other one, also across restarts of the machine. */
function thisMoment(pid: number): { born: string; boot: string } {
  try {
    return { born: processBirth(pid), boot: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() }
  } catch {
    return { born: '', boot: '' }
  }
}
