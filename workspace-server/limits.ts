import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import { INSIDE, type LimitsResult } from './protocol.ts'

/** cgroup v1 writes "no limit" as a number near 2^63. */
const NO_LIMIT = 2 ** 60

/** Every limit as the kernel shows it to this process; tests set `base` in place of `/`. */
export function readLimits(root: string, base = ''): LimitsResult {
  const status = readStatus(`${base}/proc/self/status`)
  const { blocks, bsize, files } = statfsSync(root)
  return {
    uid: process.getuid?.() ?? -1,
    memoryBytes: firstNumber(base, ['memory.max', 'memory/memory.limit_in_bytes']),
    pids: firstNumber(base, ['pids.max', 'pids/pids.max']),
    processLimit: readProcessLimit(readText(`${base}/proc/self/limits`) ?? ''),
    cpus: readCpus(base),
    interfaces: readInterfaces(`${base}/sys/class/net`),
    capabilities: ['CapEff', 'CapPrm', 'CapBnd']
      .reduce((all, name) => all | BigInt(`0x${status.get(name) ?? '0'}`), 0n)
      .toString(16),
    noNewPrivileges: status.has('NoNewPrivs') ? status.get('NoNewPrivs') === '1' : null,
    seccomp: numberOrNull(status.get('Seccomp')),
    openKernelParts: probeKernel(`${base}${INSIDE.kernelProbe}`),
    rootWritable: isRootWritable(readText(`${base}/proc/self/mounts`) ?? ''),
    workspaceBytes: blocks * bsize,
    workspaceInodes: files
  }
}

/** The meaning of the letters that `images/kernel-probe/kernel-probe.c` prints. */
const KERNEL_PARTS: Record<string, string> = {
  v: 'AF_VSOCK sockets',
  g: 'AF_ALG sockets',
  n: 'netlink sockets beyond NETLINK_ROUTE',
  u: 'io_uring',
  a: 'asynchronous I/O (io_setup)',
  x: 'AF_VSOCK sockets by x32 calls',
  s: 'AF_VSOCK sockets by the 32-bit socketcall'
}
const PROBE_MS = 5000

const PROBED = new Set(['x64', 'arm64'])

/** Returns null if there is no probe for this architecture. Without the first dot, the probe has not tried everything. */
function probeKernel(probe: string): string[] | null {
  if (!PROBED.has(process.arch)) return null
  const { stdout } = spawnSync(probe, { timeout: PROBE_MS, stdio: ['ignore', 'pipe', 'ignore'], encoding: 'latin1' })
  if (typeof stdout !== 'string' || !stdout.includes('.')) return ['unknown, because the kernel probe did not run']
  return [...stdout].flatMap((letter) => KERNEL_PARTS[letter] ?? [])
}

function firstNumber(base: string, names: string[]): number | null {
  for (const name of names) {
    const text = readText(`${base}/sys/fs/cgroup/${name}`)
    if (text !== null) return limitOrNull(Number(text))
  }
  return null
}

function readCpus(base: string): number | null {
  const v2 = readText(`${base}/sys/fs/cgroup/cpu.max`)
  if (v2 !== null) {
    const [quota, period] = v2.split(' ').map(Number)
    return ratio(quota, period)
  }
  for (const folder of ['cpu', 'cpu,cpuacct']) {
    const quota = readText(`${base}/sys/fs/cgroup/${folder}/cpu.cfs_quota_us`)
    const period = readText(`${base}/sys/fs/cgroup/${folder}/cpu.cfs_period_us`)
    if (quota !== null && period !== null) return ratio(Number(quota), Number(period))
  }
  return null
}

/** The hard limit counts, because every process can raise its soft limit up to it. */
function readProcessLimit(limits: string): number | null {
  const hard = Number(/^Max processes +\S+ +(\S+)/m.exec(limits)?.[1])
  return Number.isFinite(hard) ? hard : null
}

/** "max" is NaN and v1's "none" is -1; both mean no limit. */
function ratio(quota = Number.NaN, period = Number.NaN): number | null {
  return quota > 0 && period > 0 ? quota / period : null
}

function limitOrNull(value: number): number | null {
  return Number.isFinite(value) && value < NO_LIMIT ? value : null
}

function numberOrNull(text: string | undefined): number | null {
  return text === undefined ? null : Number(text)
}

function readStatus(path: string): Map<string, string> {
  const lines = (readText(path) ?? '').split('\n')
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]))
}

function readInterfaces(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

/** Uses the mount's own options, because permissions alone would not show it. The last mount on `/` is the one in force. */
function isRootWritable(mounts: string): boolean {
  const options = mounts
    .split('\n')
    .map((line) => line.split(' '))
    .findLast((fields) => fields[1] === '/')?.[3]
  return !(options ?? 'rw').split(',').includes('ro')
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}
