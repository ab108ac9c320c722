import type { CallEntry } from '../../../contract/transcript.ts'
import { count } from '../format.ts'
import { isCommand } from './call-summary.ts'

interface Stopped {
  /** How many calls wait for approval, those included that have run in a fork. */
  waiting: number
  /** How many of them have run in a fork, or run there now. Undefined if that is not known. */
  forked?: number | undefined
  hasTurn: boolean
  running?: CallEntry | undefined
}

/** Says what stopping the turn would cancel or interrupt; empty if no turn is running. */
export function stopWarning({ waiting, forked, hasTurn, running }: Stopped): string {
  const lost: string[] = []
  if (running) lost.push(`The ${isCommand(running) ? 'command' : 'call'} that runs now will be cut off.`)
  const plain = waiting - (forked ?? 0)
  const needing = `${count(plain, 'call that needs', 'calls that need')} your approval will be cancelled`
  if (plain > 0) lost.push(forked === undefined ? `${needing}.` : `${needing} and will not run.`)
  if (forked) lost.push(`What ${count(forked, 'call')} did in a fork will be discarded.`)
  if (lost.length === 0 && hasTurn) return 'The model is still working: this stops it.'
  return lost.join(' ')
}
