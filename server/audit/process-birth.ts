import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { hasCode } from '../lib/errors.ts'

const START_TIME = 19

/** Distinguishes a process from a later one with the same pid. Empty if the system does not tell. */
export function processBirth(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return (
      stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .at(START_TIME) ?? ''
    )
  } catch {
    return ''
  }
}

/** Whether the process that wrote a chain may still be running. For another machine the answer is always yes. */
export function mayLive({ pid, born, host }: { pid: number; born: string; host: string }): boolean {
  if (host !== hostname()) return true
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return false
  }
  return processBirth(pid) === born
}
