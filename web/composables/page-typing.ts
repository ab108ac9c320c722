import { TypingClock } from './decision-keys.ts'

/** Shared by the whole page: text that is begun in one place may continue in another if the focus moves. */
export const typing = new TypingClock()
/** Keys that a card has already handled. */
const handled = new WeakSet<Event>()

export function pressOf(event: KeyboardEvent) {
  const { key, repeat, ctrlKey, metaKey, altKey, isComposing, keyCode } = event
  return {
    key,
    // AltGr types characters.
    isChord: (ctrlKey || metaKey || altKey) && !event.getModifierState('AltGraph'),
    isRepeat: repeat,
    // Some browsers report a composition only by this old code.
    isComposing: isComposing || keyCode === 229
  }
}
export function markHandled(event: Event): void {
  handled.add(event)
}

addEventListener('keydown', (event) => {
  if (!handled.has(event)) typing.note(pressOf(event), performance.now())
})
addEventListener('pointerdown', () => typing.clear(), { capture: true })
