import type { CallView } from '../stores/call-views.ts'
import { type Armed, useArmed } from './use-armed.ts'

/** What every card with a question has: it is armed a moment after the cards moved, and single keys answer it while it has the focus. */
export function useDecision(
  view: CallView,
  arrangement: () => string,
  actions: Record<string, () => void>
): Armed & { onKey(event: KeyboardEvent): void; onFocus(event: FocusEvent): void } {
  const armed = useArmed(arrangement)

  function onKey(event: KeyboardEvent) {
    const inField = event.target instanceof HTMLElement && event.target.matches('input, textarea')
    const isOther = event.repeat || event.ctrlKey || event.metaKey || event.altKey
    if (inField || isOther || view.mode !== 'decide') return
    const action = actions[event.key.toLowerCase()]
    if (!action) return
    event.preventDefault()
    armed.ifArmed(action)
  }
  /** The keyboard came to the card: what is typed just now was meant for elsewhere. A pointer's focus is part of its click. */
  function onFocus({ target, currentTarget }: FocusEvent) {
    if (target === currentTarget && target instanceof HTMLElement && target.matches(':focus-visible')) armed.rearm()
  }
  return { ...armed, onKey, onFocus }
}
