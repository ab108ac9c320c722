import type { CallEntry } from '../../../contract/transcript.ts'
import { count } from '../format.ts'
import { WORKSPACE } from './call-summary.ts'

interface Stopped {
  /** How many calls wait for approval. */
  waiting: number
  hasTurn: boolean
  running?: CallEntry | undefined
}

/** Says what stopping the turn would cancel or interrupt; empty if no turn is running. */
export function stopWarning({ waiting, hasTurn, running }: Stopped): string {
  const lost: string[] = []
  if (running) lost.push(`The ${running.server === WORKSPACE ? 'command' : 'call'} that runs now will be cut off.`)
  if (waiting > 0)
    lost.push(
      `${count(waiting, 'call that needs', 'calls that need')} your approval will be cancelled and will not run.`
    )
  if (lost.length === 0 && hasTurn) return 'The model is still working: this stops it.'
  return lost.join(' ')
}
