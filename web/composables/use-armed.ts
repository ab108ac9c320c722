import { computed, onMounted, onUnmounted, type Ref, ref, watch } from 'vue'
import { BURST_MS, isCalm, isDeliberate, isPointed, onceMoved, pointedAt } from './page-pointer.ts'
import { useMoves } from './use-moves.ts'

export interface Armed {
  /** For `aria-disabled`: a button with `disabled` would lose the focus. */
  isArmed: Readonly<Ref<boolean>>
  /** Runs the action of a click, if armed. */
  ifArmed(action: () => void): void
  rearm(): void
  /** One of the buttons came under the pointer, which has not moved since. */
  isUnread: Readonly<Ref<boolean>>
}

/** After this time, the person has had time to read what came under the resting pointer. */
const READ_MS = 3000

/**
 * Buttons that must not be pressed by accident. They do nothing for a moment after they appeared, after `arrangement` (a text that
 * changes with the layout) has changed, after `place` has moved without scrolling, and after each click anywhere. So a click never hits
 * something that has just moved under the pointer, and a burst of clicks decides once. If one came under a resting pointer, clicks do
 * nothing until the pointer moves, or for three seconds; buttons with `isForRestingPointers` are meant to appear there.
 */
export function useArmed(
  arrangement: () => string,
  place?: Readonly<Ref<HTMLElement | null>>,
  isForRestingPointers = false
): Armed {
  const isSettled = ref(false)
  const isUnread = ref(false)
  let isMoved = false
  let frame = 0
  let timer: ReturnType<typeof setTimeout>
  let ignoreMove = () => {}
  function stop(): void {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
    ignoreMove()
  }
  function isPointedAt(): boolean {
    const button = pointedAt()
    return button !== null && (place ? place.value?.contains(button) === true : button.ariaDisabled === 'true')
  }
  function settle(): void {
    isUnread.value = !isForRestingPointers && !isMoved && isPointedAt()
    isSettled.value = true
    if (isUnread.value) timer = setTimeout(read, READ_MS - BURST_MS)
  }
  function read(): void {
    isMoved = true
    isUnread.value = false
  }
  /** Counts from the next frame: what a busy page has not drawn yet, nobody has seen. */
  function rearm(): void {
    isSettled.value = false
    isUnread.value = false
    isMoved = false
    stop()
    ignoreMove = onceMoved(read)
    frame = requestAnimationFrame(() => {
      timer = setTimeout(settle, BURST_MS)
    })
  }
  onMounted(rearm)
  onUnmounted(stop)
  // Runs before the page is redrawn, so that nothing is armed in a new place.
  watch(arrangement, rearm)
  const moves = place && useMoves(place, rearm)
  const ifArmed = (action: () => void) => {
    moves?.look()
    const isRead = !isUnread.value || !isPointed()
    if (isSettled.value && isRead && isDeliberate()) action()
  }
  const isArmed = computed(() => isSettled.value && !isUnread.value && isCalm.value)
  return { isArmed, ifArmed, rearm, isUnread }
}
