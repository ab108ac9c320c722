import { readFileSync } from 'node:fs'
import { hasCode } from '../../lib/errors.ts'

const SIGKILL_BIT = 1n << 8n

/**
 * True if the process is dead or has a pending SIGKILL: what is written to it now would be lost, and nobody could tell whether it
 * was read. Checked before a call that must not be repeated. Without /proc the answer is no.
 */
export function isDoomed(pid: number): boolean {
  let status: string
  try {
    status = readFileSync(`/proc/${pid}/status`, 'latin1')
  } catch (error) {
    return process.platform === 'linux' && hasCode(error, 'ENOENT')
  }
  if (/^State:\s+[ZX]/m.test(status)) return true
  const masks = [...status.matchAll(/^(?:SigPnd|ShdPnd):\s+([0-9a-f]+)/gm)]
  return masks.some(([, mask]) => (BigInt(`0x${mask}`) & SIGKILL_BIT) !== 0n)
}
