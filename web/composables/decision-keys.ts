/**
 * Decides what a key means on a card that asks for a decision. No single key decides. A letter only chooses a button or opens a form; Enter
 * on the chosen button decides, if it is the next key and comes after a short pause. Keys that look like typing are swallowed: they
 * decide nothing and mean nothing elsewhere on the page.
 */

/** Keys pressed within this time after a typed character count as typing too. */
export const TYPING_MS = 2000
/** A button must have had the focus for this long before Enter or Space presses it. */
export const PAUSE_MS = 300

export interface Press {
  key: string
  /** Ctrl, Alt or Meta is pressed too: a shortcut of the browser or of the page. */
  isChord: boolean
  isRepeat: boolean
  /** Part of a character that is still being composed. */
  isComposing: boolean
}

/** `pass`: the browser handles the key. `swallow`: nothing happens. `release`: nothing happens, and the card gets the focus back. */
export type Effect = { type: 'pass' | 'swallow' | 'release' } | { type: 'act'; letter: string }

/** Keys that move the focus or the cursor and type no text. */
const isMoving = (key: string) =>
  key.length > 1 && !['Backspace', 'Delete', 'Dead', 'Process', 'Unidentified'].includes(key)

/** Knows when a character was last typed, anywhere on the page: text that was begun elsewhere may continue on a card. */
export class TypingClock {
  #last = Number.NEGATIVE_INFINITY

  note({ key, isChord, isComposing }: Press, now: number): void {
    if (isComposing || (!isChord && !isMoving(key))) this.#last = now
  }
  /** The person acted on purpose, so the next keys are not the rest of a text. */
  clear(): void {
    this.#last = Number.NEGATIVE_INFINITY
  }
  isTyping(now: number): boolean {
    return now - this.#last < TYPING_MS
  }
}

export class DecisionKeys {
  readonly #typing: TypingClock
  readonly #letters: ReadonlySet<string>
  /** The letter that chooses a button; the others open a form. */
  readonly #choosing: string
  #chosenAt: number | null = null
  #focusedAt = Number.NEGATIVE_INFINITY
  /** When a letter was last typed on a button of the form. */
  #strayAt = Number.NEGATIVE_INFINITY

  constructor(typing: TypingClock, letters: Iterable<string>, choosing: string) {
    this.#typing = typing
    this.#letters = new Set(letters)
    this.#choosing = choosing
  }

  get isChosen(): boolean {
    return this.#chosenAt !== null
  }

  /** The card or one of its buttons received the focus. */
  focus(now: number, isChosen: boolean): void {
    this.#focusedAt = now
    if (!isChosen) this.#chosenAt = null
  }

  /** A key was pressed on the card or on one of its buttons, while no form is open. */
  press(press: Press, now: number): Effect {
    const { key, isChord, isRepeat, isComposing } = press
    if (isChord) return { type: 'pass' }
    if (isComposing) return this.#typed(press, now)
    if (key === 'Enter' || key === ' ') return this.#pressButton(press, now)
    if (key === 'Escape' && this.isChosen) return this.#release()
    if (isMoving(key)) return { type: 'pass' }
    const letter = key.toLowerCase()
    // A letter soon after the one that chose a button is the second letter of a word.
    const isWord = this.#typing.isTyping(now) || (this.#chosenAt !== null && now - this.#chosenAt < TYPING_MS)
    if (isRepeat || isWord || !this.#letters.has(letter)) return this.#typed(press, now)
    this.#chosenAt = letter === this.#choosing ? now : null
    this.#focusedAt = now
    return { type: 'act', letter }
  }

  /**
   * A key was pressed on a button of the card's form. It counts if the button has had the focus for a moment and no letters were typed
   * on it just before: someone who types believes that a field has the focus.
   */
  pressInForm({ key, isChord, isRepeat }: Press, now: number): Effect {
    const isPress = key === 'Enter' || key === ' '
    if (!isPress && !isChord && !isMoving(key)) this.#strayAt = now
    const isStray = now - this.#strayAt < TYPING_MS
    return { type: isPress && (isRepeat || isStray || this.#isTooSoon(now)) ? 'swallow' : 'pass' }
  }

  #pressButton(press: Press, now: number): Effect {
    // After a letter, a space is the next character of a text.
    const isText = this.#typing.isTyping(now) || (press.key === ' ' && this.isChosen)
    if (isText) return this.#typed(press, now)
    if (press.key === ' ') this.#typing.note(press, now)
    return { type: press.isRepeat || this.#isTooSoon(now) ? 'swallow' : 'pass' }
  }

  /** A press that comes too soon restarts the pause, so pressing faster never helps. */
  #isTooSoon(now: number): boolean {
    if (now - this.#focusedAt >= PAUSE_MS) return false
    this.#focusedAt = now
    return true
  }

  #typed(press: Press, now: number): Effect {
    this.#typing.note({ ...press, key: 'x' }, now)
    return this.isChosen ? this.#release() : { type: 'swallow' }
  }

  #release(): Effect {
    this.#chosenAt = null
    return { type: 'release' }
  }
}
