import { computed, onUnmounted, type Ref, ref, watchEffect } from 'vue'
import type { CallView } from '../stores/call-views.ts'
import { DecisionKeys, TYPING_MS } from './decision-keys.ts'
import { markHandled, pressOf, typing } from './page-typing.ts'
import { isInView } from './seen/in-view.ts'
import { useSeenParts } from './seen/seen-parts.ts'
import { type Armed, useArmed } from './use-armed.ts'

interface Options {
  card: Readonly<Ref<HTMLElement | null>>
  view: CallView
  /** A text that changes whenever cards may move. */
  arrangement: () => string
  /** Actions of the other letters. A always chooses the button marked with `data-approve`. */
  open: Record<string, () => void>
  words?: { yes: string; no: string }
}
const APPROVE = '[data-approve]'
const FIELDS = 'input, textarea, select'

/**
 * The behaviour of every card that asks for a decision. Its buttons are armed a moment after the cards have moved. Keys count only while
 * the card has the focus and is visible; decision-keys.ts says what they mean.
 */
export function useDecision({ card, view, arrangement, open, words }: Options) {
  const armed: Armed = useArmed(arrangement, card)
  const keys = new DecisionKeys(typing, ['a', ...Object.keys(open)], 'a')
  const seen = useSeenParts(view.seenTexts)
  watchEffect(() => {
    view.isUnseen = !seen.isAllSeen.value
  })
  const hasKeyboard = () => card.value?.matches(':focus-visible, :has(:focus-visible)') === true
  const ifSeen = (approve: () => void) => seen.ifSeen(approve, hasKeyboard())
  const isChosen = ref(false)
  const isIgnoring = ref(false)
  let timer: ReturnType<typeof setTimeout>
  onUnmounted(() => clearTimeout(timer))

  function keydown(event: KeyboardEvent) {
    const { target } = event
    if (!(target instanceof HTMLElement) || target.matches(FIELDS)) return
    const press = pressOf(event)
    const now = performance.now()
    if (view.mode !== 'decide') return hinder(event, keys.pressInForm(press, now).type !== 'pass')
    markHandled(event)
    const effect = keys.press(press, now)
    isChosen.value = keys.isChosen
    if (effect.type === 'act') act(effect.letter)
    if (effect.type === 'release') card.value?.focus()
    if (typing.isTyping(now) && effect.type !== 'pass') tellOfTyping()
    const isPressed = effect.type === 'pass' && ['Enter', ' '].includes(press.key) && target.matches('button')
    hinder(event, effect.type !== 'pass' || (isPressed && !isInSight(target)))
  }
  /** Some browsers press a button when Space is released. */
  function keyup(event: KeyboardEvent) {
    if (event.key === ' ' && stopped) event.preventDefault()
  }
  let stopped = false
  function hinder(event: KeyboardEvent, isHindered: boolean) {
    stopped = isHindered
    if (isHindered) event.preventDefault()
  }

  function act(letter: string) {
    isIgnoring.value = false
    if (letter === 'a') card.value?.querySelector<HTMLElement>(APPROVE)?.focus()
    else open[letter]?.()
  }
  function tellOfTyping() {
    isIgnoring.value = true
    clearTimeout(timer)
    timer = setTimeout(() => {
      isIgnoring.value = false
    }, TYPING_MS)
  }

  function focusin({ target, currentTarget }: FocusEvent) {
    if (!(target instanceof HTMLElement)) return
    keys.focus(performance.now(), keys.isChosen && target.matches(APPROVE))
    isChosen.value = keys.isChosen
    // Keys typed in the moment when the card receives the focus were meant for elsewhere. A pointer's focus is part of its click.
    if (target === currentTarget && target.matches(':focus-visible')) armed.rearm()
  }
  function focusout({ relatedTarget }: FocusEvent) {
    if (relatedTarget instanceof Node && card.value?.contains(relatedTarget)) return
    keys.focus(performance.now(), false)
    isChosen.value = false
  }

  /** Shown on the card while it has the focus, or came under a resting pointer. */
  const hint = computed(() => {
    if (seen.unseenHint.value !== '') return seen.unseenHint.value
    if (armed.isUnread.value) return 'This card came under your pointer. Move the pointer before you click.'
    if (isIgnoring.value)
      return 'That looked like typing, so nothing was decided. Pause for two seconds before you press a key.'
    const { yes, no } = words ?? { yes: 'approve', no: 'reject' }
    if (isChosen.value) return `Press Enter to ${yes}, Esc to go back.`
    return `A, then Enter: ${yes}. R: ${no}, with a reason.${open.e ? ' E: edit.' : ''}`
  })
  /** The hint is a message, not only a reminder of the keys. */
  const isTold = computed(() => armed.isUnread.value || seen.unseenHint.value !== '')
  return { ...armed, ifSeen, isChosen, isTold, hint, listeners: { keydown, keyup, focusin, focusout } }
}

/** For other buttons that must not be pressed by accident: keys do nothing while the person types, or just after the button received the focus. */
export function useGuardedButtons() {
  const keys = new DecisionKeys(typing, [], '')
  let isStopped = false
  return {
    keydown(event: KeyboardEvent) {
      markHandled(event)
      isStopped = keys.press(pressOf(event), performance.now()).type !== 'pass'
      if (isStopped) event.preventDefault()
    },
    keyup(event: KeyboardEvent) {
      if (isStopped && event.key === ' ') event.preventDefault()
    },
    focusin: () => keys.focus(performance.now(), false)
  }
}

/** Whether the middle of the element is visible. If not, scrolls it into view, so that the next key counts. */
function isInSight(element: HTMLElement): boolean {
  const isSeen = isInView(element)
  if (!isSeen) element.scrollIntoView({ block: 'nearest' })
  return isSeen
}
