import { count } from './format.ts'

/** What stopping the turn takes away from the person, in a sentence; empty when no turn is under way. */
export function stopWarning(waiting: number, hasTurn: boolean): string {
  if (waiting > 0)
    return `${count(waiting, 'call that needs', 'calls that need')} your approval will be cancelled and will not run.`
  return hasTurn ? 'The model is still working: this stops it.' : ''
}
