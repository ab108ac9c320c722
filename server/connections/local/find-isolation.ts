/**
 * Finds out how far this machine can isolate servers, by trying it: machines refuse different things. Only a refusal counts as "it can't".
 * A machine that is busy, or on which something is used up, is undecided, and no server runs unprotected there: a server could have
 * used up the namespaces of its user in order to switch off the isolation of the next gateway.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { AppError, errorCode, hasCode, messageOf } from '../../lib/errors.ts'
import { type Extent, type Isolation, isolation, type Settled } from './child-isolation.ts'
import { recallExtent } from './isolation-memory.ts'

/** Far more than a probe needs on a busy machine. */
const PROBE_MS = 20_000
const WORKED = 42
const MAX_ERRORS = 4000
/** From the best to the least. */
const EXTENTS: Extent[] = [
  { name: 'own-proc', covers: true, pids: 'own proc' },
  { name: 'same-proc', covers: true, pids: 'same proc' },
  { name: 'files', covers: true },
  { name: 'users', covers: false }
]

/** Messages of the programs and the kernel if something is refused for good, or missing. */
const REFUSED =
  /permitted|permission|denied|superuser|not implemented|not supported|invalid|unrecognized|unknown|wrong fs type|bad option|protected|read-only|does not exist|not exist|no such|not found/i
/** Their messages if a resource is used up. */
const USED_UP =
  /no space left|temporarily unavailable|cannot allocate|out of (memory|space)|too many|cannot fork|error 2[34]\b/i

export interface FindIsolationOptions {
  probeMs?: number
  /** The file that remembers what worked on this machine (`isolation-memory.ts`). */
  memory?: string | undefined
}

/** Resolves to undefined if this machine can't isolate children. Rejects if that could not be decided, or if it could do more before. */
export async function findIsolation(options: FindIsolationOptions = {}): Promise<Isolation | undefined> {
  if (process.platform !== 'linux') return undefined
  const { probeMs = PROBE_MS, memory } = options
  const before = memory === undefined ? undefined : recallExtent(memory)
  for (const extent of EXTENTS) {
    const candidate = isolation(extent)
    const refusal = candidate ? await refusalOf(candidate, probeMs) : 'unshare, mount, setpriv or env is not there'
    if (refusal === undefined) return candidate
    if (memory !== undefined && extent.name === before) throw lost(refusal, memory)
  }
  return undefined
}

/** Resolves to the reason why it can't be used, or to undefined if it works. */
async function refusalOf(candidate: Isolation, probeMs: number): Promise<string | undefined> {
  // Changes nothing outside: the mounts belong to the probe.
  const confinement = {
    held: [tmpdir()],
    folders: [tmpdir()],
    files: candidate.covers ? [process.execPath] : [],
    engines: [],
    readOnly: candidate.covers ? [import.meta.dirname] : [],
    replaceable: [],
    cwd: '/'
  }
  const probe = { command: '/bin/sh', args: ['-c', `exit ${WORKED}`], env: {} }
  const { command, args, env } = candidate.wrap(probe, confinement)
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], env })
  let settled: Settled | undefined
  child.once('spawn', () => {
    settled = candidate.settle(child, confinement)
  })
  const { code, errors } = await ended(child, probeMs)
  return code === WORKED ? undefined : decide(code, errors, settled?.failure())
}

async function ended(child: ChildProcess, probeMs: number): Promise<{ code: number | null; errors: string }> {
  let errors = ''
  child.stderr?.on('data', (chunk) => {
    errors = `${errors}${chunk}`.slice(0, MAX_ERRORS)
  })
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | null; errors: string }>()
  child.once('error', (error) =>
    hasCode(error, 'ENOENT', 'EACCES', 'EPERM')
      ? resolve({ code: -1, errors: messageOf(error) })
      : reject(undecided(messageOf(error)))
  )
  child.once('close', (code) => resolve({ code, errors }))
  const timer = setTimeout(() => {
    child.kill('SIGKILL')
    reject(undecided(`no answer within ${probeMs / 1000} s`))
  }, probeMs)
  return promise.finally(() => clearTimeout(timer))
}

/** Throws if the outcome says nothing about what this machine can do. */
function decide(code: number | null, errors: string, failure: unknown): string {
  const said = [errors.trim(), failure === undefined ? '' : messageOf(failure)].filter((text) => text !== '').join(' ')
  const reason = said === '' ? `the probe ended with ${code === null ? 'a signal' : `code ${code}`}` : said
  if (USED_UP.test(said) && !(isNoSpace(said) && hasNoNamespaces())) throw undecided(reason)
  // The programs give exit codes of their own, so only what they say is known.
  const isRefused =
    USED_UP.test(said) || REFUSED.test(said) || ['EPERM', 'EACCES', 'EINVAL'].includes(errorCode(failure) ?? '')
  if (code === null || !isRefused) throw undecided(reason)
  return reason
}

function isNoSpace(said: string): boolean {
  return !USED_UP.test(said.replaceAll(/no space left/gi, ''))
}

/** An administrator who allows none has refused them. The kernel then says the same as if all were in use. */
function hasNoNamespaces(): boolean {
  return ['user', 'mnt', 'pid', 'ipc'].some((kind) => {
    try {
      return readFileSync(`/proc/sys/user/max_${kind}_namespaces`, 'latin1').trim() === '0'
    } catch {
      return false
    }
  })
}

function undecided(reason: string): AppError {
  const message = `Could not check whether this system can isolate servers (${reason}), so no server without "sandbox" is started. The next start checks again.`
  return new AppError('unavailable', 'isolation_undecided', message)
}

function lost(reason: string, memory: string): AppError {
  const message = `Servers could be isolated on this machine before, but not now (${reason}), so no server without "sandbox" is started. Undo what has changed on this system, or give servers a "sandbox" in mcp.json. If you want to run them with less isolation, delete ${memory}.`
  return new AppError('forbidden', 'isolation_unavailable', message)
}
