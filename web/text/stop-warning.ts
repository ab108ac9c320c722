import { count } from './format.ts'

/** Says what stopping the turn would cancel; empty if no turn is running. */
export function stopWarning(waiting: number, hasTurn: boolean): string {
  if (waiting > 0)
    return `${count(waiting, 'call that needs', 'calls that need')} your approval will be cancelled and will not run.`
  return hasTurn ? 'The model is still working: this stops it.' : ''
}
