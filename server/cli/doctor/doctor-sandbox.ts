/** The checks of `doctor` that need a real sandbox. Each creates one and removes it. */
import { randomUUID } from 'node:crypto'
import type { SandboxEngine, WorkspaceConnection } from '../../sandbox/port.ts'
import type { UidRange } from '../../sandbox/uid-range.ts'
import type { Found } from './doctor-servers.ts'

const DOCTOR = 'doctor'
/** Longer than any check takes. */
const LOOK_MS = 600_000
const LIST_MS = 30_000
const LIST = `
echo "node $(/opt/mcp/bin/node --version | tr -d v)"
if command -v dpkg-query >/dev/null; then dpkg-query -W -f '\${Package} \${Version}\\n'
elif command -v rpm >/dev/null; then rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\\n' | sort
else echo "this image has no package manager, so its packages can't be listed"; fi`

export async function describeLimits(engine: SandboxEngine): Promise<string> {
  const limits = await inSandbox(engine, (connection) => engine.verifyLimits(connection))
  const memory = limits.memoryBytes === null ? 'memory limit not visible' : `${limits.memoryBytes / 2 ** 20} MB`
  const files = Math.round(limits.workspaceBytes / 2 ** 20)
  const filter = limits.openKernelParts?.length === 0 ? ', seccomp profile applied' : ''
  return `enforced: ${memory}, ${limits.cpus ?? '?'} CPU, ${limits.pids ?? limits.processLimit ?? '?'} processes, ${files} MB of files, uid ${limits.uid}, no capabilities${filter}`
}

/** The usual number of user ids on a rootless engine. */
const COMMON_UIDS = 65_536

export async function describeUsers(engine: SandboxEngine, { first, last }: UidRange): Promise<Found> {
  const { remapsUsers } = await engine.status()
  const range = `${first}-${last}, one for each container`
  if (!remapsUsers || last < COMMON_UIDS) return range
  return {
    warn: `${range}; but this engine remaps users and may not have all of these ids: keep SANDBOX_UIDS below ${COMMON_UIDS}, or give the engine more subordinate ids (/etc/subuid).`
  }
}

/** The packages of the image with their versions, from its package manager. */
export async function listContents(engine: SandboxEngine): Promise<string[]> {
  const options = { timeoutMs: LIST_MS }
  const { structuredContent } = await inSandbox(engine, (connection) =>
    connection.callTool('execute_command', { command: LIST }, options)
  )
  return String(structuredContent?.stdout ?? '')
    .trim()
    .split('\n')
}

/** Removes sandboxes of a killed `doctor`. Younger ones may belong to one that is still running. */
async function removeLeft(engine: SandboxEngine): Promise<void> {
  const left = (await engine.list(DOCTOR)).filter(({ createdAt }) => Date.now() - createdAt > LOOK_MS)
  await Promise.allSettled(left.map(({ id }) => engine.remove(id)))
}

async function inSandbox<T>(engine: SandboxEngine, look: (connection: WorkspaceConnection) => Promise<T>): Promise<T> {
  await removeLeft(engine)
  const containerId = await engine.create({ deployment: DOCTOR, instance: randomUUID() })
  try {
    const connection = await engine.connect(containerId, 1)
    const seen = await look(connection)
    await connection.close()
    return seen
  } finally {
    await engine.remove(containerId)
  }
}
