/** Finds out whether the network leads anywhere. A sandbox should reach nothing, and some clusters ignore their own rules. */
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import type { ReachParams, ReachResult, ReachTarget } from './protocol.ts'

/** A DNS question for the root's name servers: any server answers it, if only with a refusal. */
const QUESTION = Buffer.from('4d43010000010000000000000000020001', 'hex')

/** Tries all targets at the same time. */
export async function reach({ targets, timeoutMs }: ReachParams): Promise<ReachResult> {
  const tried = targets.map((target) => (target.protocol === 'udp' ? answers : accepts)(target, timeoutMs))
  const results = await Promise.all(tried)
  return { reached: targets.flatMap((_, index) => (results[index] ? [index] : [])) }
}

/** A refused connection does not count: some clusters enforce their rules by refusing. So name ports that are open. */
function accepts({ host, port }: ReachTarget, timeoutMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host, port, timeout: timeoutMs })
  socket.once('connect', () => resolve(true))
  socket.once('timeout', () => resolve(false))
  socket.once('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}

function answers({ host, port }: ReachTarget, timeoutMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const timer = setTimeout(() => resolve(false), timeoutMs)
  socket.once('message', () => resolve(true))
  socket.once('error', () => resolve(false))
  socket.send(QUESTION, port, host, (error) => {
    if (error) resolve(false)
  })
  return promise.finally(() => {
    clearTimeout(timer)
    socket.close()
  })
}
