/**
 * Checks from inside that a sandbox reaches nothing. A cluster without a policy engine accepts a NetworkPolicy and ignores it, so what
 * the API says about policies proves nothing.
 */
import { lookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { MAX_REACH_TARGETS, type ReachTarget } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { WorkspaceConnection } from '../port.ts'

/** Policies take effect shortly after a pod has started. */
const TRIES = 4
const BETWEEN_MS = 500
const FIRST_MS = 1000
/** Every target is in the cluster, where an answer takes a few milliseconds. A session waits for this check. */
const AGAIN_MS = 50
const KUBELET_PORT = 10_250
const METADATA: ReachTarget = { protocol: 'tcp', host: '169.254.169.254', port: 80 }

export interface TargetOptions {
  /** The address of the API server. */
  api: string
  /** We are in the cluster, so its name servers are ours. */
  isInside: boolean
  /** More targets, as `host:port`. */
  more?: string[] | undefined
}

/** The targets for every sandbox of this cluster. The node of a pod comes in addition. */
export async function commonTargets({ api, isInside, more = [] }: TargetOptions): Promise<ReachTarget[]> {
  const { hostname, port, protocol } = new URL(api)
  const apiPort = Number(port) || (protocol === 'https:' ? 443 : 80)
  const named = [`${hostname}:${apiPort}`, ...more].map(resolved)
  const servers = isInside ? nameServers(await readFile('/etc/resolv.conf', 'utf8').catch(() => '')) : []
  const dns = servers.map((host) => ({ protocol: 'udp' as const, host, port: 53 }))
  return [...(await Promise.all(named)).flat(), ...dns, METADATA].slice(0, MAX_REACH_TARGETS - 1)
}

async function resolved(target: string): Promise<ReachTarget[]> {
  const [, name = '', port = ''] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(target) ?? []
  const host = name.replace(/^\[|\]$/g, '')
  const hosts = isIP(host) ? [host] : (await lookup(host, { all: true }).catch(() => [])).map(({ address }) => address)
  return hosts.map((address) => ({ protocol: 'tcp', host: address, port: Number(port) }))
}

function nameServers(text: string): string[] {
  return [...text.matchAll(/^nameserver\s+(\S+)/gm)].flatMap(([, host = '']) => (isIP(host) ? [host] : []))
}

export function nodeTarget(hostIp: string | undefined): ReachTarget[] {
  return hostIp === undefined || isIP(hostIp) === 0 ? [] : [{ protocol: 'tcp', host: hostIp, port: KUBELET_PORT }]
}

/** For a new sandbox. Throws `network_open` if it still reaches something after a while. */
export async function checkClosed(connection: WorkspaceConnection, targets: ReachTarget[]): Promise<void> {
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
  const message = `A sandbox reaches the network (${names.join(', ')}), so it is not used: apply the NetworkPolicy in deploy/kubernetes, on a cluster whose network plugin enforces policies. KUBERNETES_NETWORK_CHECK=off accepts this.`
  return new AppError('unavailable', 'network_open', message)
}
