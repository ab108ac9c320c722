import { TypingClock } from './decision-keys.ts'

/** One for the page: a text that is begun in one place may go on in another, when the focus moves meanwhile. */
export const typing = new TypingClock()
/** Keys that a card has judged itself. */
const judged = new WeakSet<Event>()

export function pressOf(event: KeyboardEvent) {
  const { key, repeat, ctrlKey, metaKey, altKey, isComposing, keyCode } = event
  return {
    key,
    // With AltGr one types characters.
    isChord: (ctrlKey || metaKey || altKey) && !event.getModifierState('AltGraph'),
    isRepeat: repeat,
    // Some browsers tell of a composition by this old code alone.
    isComposing: isComposing || keyCode === 229
  }
}
export function markJudged(event: Event): void {
  judged.add(event)
}

addEventListener('keydown', (event) => {
  if (!judged.has(event)) typing.note(pressOf(event), performance.now())
})
addEventListener('pointerdown', () => typing.clear(), { capture: true })
