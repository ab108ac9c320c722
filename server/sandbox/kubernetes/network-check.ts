/**
 * Checks from inside that a sandbox reaches nothing. A cluster without a policy engine accepts a NetworkPolicy and ignores it, so what
 * the API says about policies proves nothing.
 */
import { lookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { V1PodStatus } from '@kubernetes/client-node'
import { MAX_REACH_TARGETS, type ReachTarget } from '../../../workspace-server/protocol.ts'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { WorkspaceConnection } from '../port.ts'

/** Policies take effect shortly after a pod has started. */
const TRIES = 4
const BETWEEN_MS = 500
const FIRST_MS = 1000
/** Every target is in the cluster, where an answer takes a few milliseconds. A session waits for this check. */
const AGAIN_MS = 50
const KUBELET_PORT = 10_250
const MAX_NODE_ADDRESSES = 4
const METADATA: ReachTarget = { protocol: 'tcp', host: '169.254.169.254', port: 80 }

/** How long names keep their addresses. A managed API server moves now and then. */
const KNOWN_MS = 300_000

export interface TargetOptions {
  /** The address of the API server. */
  api: string
  /** We are in the cluster, so its name servers are ours. */
  isInside: boolean
  /** More targets, as `host:port`. */
  more?: string[] | undefined
  /** Services that we use or offer ourselves: the store, our own port. Those that only we can reach are skipped. */
  own?: { host: string; port: number }[] | undefined
}

/** The targets for every sandbox of this cluster. The node of a pod comes in addition. */
export class CommonTargets {
  readonly #options: TargetOptions
  #found: { targets: ReachTarget[]; at: number } | undefined

  constructor(options: TargetOptions) {
    this.#options = options
  }

  /** Throws if one of them can't be found: without it, the check would prove less than it says. */
  async get(): Promise<ReachTarget[]> {
    if (this.#found && performance.now() - this.#found.at < KNOWN_MS) return this.#found.targets
    const targets = await commonTargets(this.#options)
    this.#found = { targets, at: performance.now() }
    return targets
  }
}

async function commonTargets({ api, isInside, more = [], own = [] }: TargetOptions): Promise<ReachTarget[]> {
  const { hostname, port, protocol } = new URL(api)
  const apiTarget = { host: unbracketed(hostname), port: Number(port) || (protocol === 'https:' ? 443 : 80) }
  const named = [apiTarget, ...more.map(splitTarget)].map(resolved)
  const ours = own.map(async (each) => (await resolved(each)).filter(({ host }) => !isLoopback(host)))
  const servers = isInside ? nameServers(await readFile('/etc/resolv.conf', 'utf8').catch(() => '')) : []
  const dns = servers.map((host) => ({ protocol: 'udp' as const, host, port: 53 }))
  const targets = [...(await Promise.all([...named, ...ours])).flat(), ...dns, METADATA]
  if (targets.length <= MAX_REACH_TARGETS - MAX_NODE_ADDRESSES) return targets
  throw unchecked(`there are ${targets.length} addresses, and it tries ${MAX_REACH_TARGETS - MAX_NODE_ADDRESSES}`)
}

function splitTarget(target: string): { host: string; port: number } {
  const [, name = '', port = ''] = /^(.+):(\d+)$/.exec(target) ?? []
  return { host: unbracketed(name), port: Number(port) }
}

function unbracketed(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

async function resolved({ host: name, port }: { host: string; port: number }): Promise<ReachTarget[]> {
  const hosts = isIP(name)
    ? [name]
    : (await lookup(name, { all: true }).catch((error) => Promise.reject(unchecked(messageOf(error))))).map(
        ({ address }) => address
      )
  return hosts.map((host) => ({ protocol: 'tcp', host, port }))
}

function isLoopback(host: string): boolean {
  return host === '::1' || host.startsWith('127.')
}

function unchecked(why: string): AppError {
  const message =
    'Nobody can check that sandboxes have no network, so none is used: the operator must look at the name of the cluster, REDIS_URL and KUBERNETES_CLOSED_TARGETS.'
  return new AppError('unavailable', 'network_unchecked', message, { where: why })
}

function nameServers(text: string): string[] {
  return [...text.matchAll(/^nameserver\s+(\S+)/gm)].flatMap(([, host = '']) => (isIP(host) ? [host] : []))
}

/** The kubelet of the pod's node, by each address of the node. */
export function nodeTargets({ hostIP, hostIPs = [] }: V1PodStatus = {}): ReachTarget[] {
  const all = new Set([hostIP, ...hostIPs.map(({ ip }) => ip)])
  return [...all]
    .filter((host) => host !== undefined && isIP(host) > 0)
    .map((host): ReachTarget => ({ protocol: 'tcp', host: host ?? '', port: KUBELET_PORT }))
    .slice(0, MAX_NODE_ADDRESSES)
}

/** For a new sandbox. Throws `network_open` if it still reaches something after a while. */
export async function checkClosed(
  connection: Pick<WorkspaceConnection, 'reach'>,
  targets: ReachTarget[]
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const reached = await connection.reach({ targets, timeoutMs: FIRST_MS })
    if (reached.length === 0) return
    if (attempt === TRIES) throw networkOpen(targets, reached)
    await delay(BETWEEN_MS)
  }
}

/** Checks once more a sandbox that reached nothing when it was new. */
export async function checkStillClosed(connection: WorkspaceConnection, targets: ReachTarget[]): Promise<void> {
  const reached = await connection.reach({ targets, timeoutMs: AGAIN_MS })
  if (reached.length > 0) throw networkOpen(targets, reached)
}

function networkOpen(targets: ReachTarget[], reached: number[]): AppError {
  const names = reached.flatMap((index) => {
    const target = targets[index]
    return target ? [`${target.host}:${target.port}`] : []
  })
  const message =
    'A sandbox reaches the network, so it is not used: apply the NetworkPolicy in deploy/kubernetes, on a cluster whose network plugin enforces policies. KUBERNETES_NETWORK_CHECK=off accepts this.'
  return new AppError('unavailable', 'network_open', message, { where: `it reaches ${names.join(', ')}` })
}
