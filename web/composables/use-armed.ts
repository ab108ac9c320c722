import { computed, onMounted, onUnmounted, type Ref, ref, watch } from 'vue'
import { BURST_MS, isCalm, isDeliberate } from './page-pointer.ts'
import { useMoves } from './use-moves.ts'

export interface Armed {
  /** For `aria-disabled`: a button with `disabled` would lose the focus. */
  isArmed: Readonly<Ref<boolean>>
  /** Runs the action of a click, if armed. */
  ifArmed(action: () => void): void
  rearm(): void
}

/**
 * Buttons that must not be pressed by accident. They do nothing for a moment after they appeared, after `arrangement` (a text that
 * changes with the layout) has changed, after `place` has moved without scrolling, and after each click anywhere. So a click never hits
 * something that has just moved under the pointer, and a burst of clicks decides once.
 */
export function useArmed(arrangement: () => string, place?: Readonly<Ref<HTMLElement | null>>): Armed {
  const isSettled = ref(false)
  let frame = 0
  let timer: ReturnType<typeof setTimeout>
  function stop(): void {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
  }
  /** Counts from the next frame: what a busy page has not drawn yet, nobody has seen. */
  function rearm(): void {
    isSettled.value = false
    stop()
    frame = requestAnimationFrame(() => {
      timer = setTimeout(() => {
        isSettled.value = true
      }, BURST_MS)
    })
  }
  onMounted(rearm)
  onUnmounted(stop)
  // Runs before the page is redrawn, so that nothing is armed in a new place.
  watch(arrangement, rearm)
  const moves = place && useMoves(place, rearm)
  const ifArmed = (action: () => void) => {
    moves?.look()
    if (isSettled.value && isDeliberate()) action()
  }
  return { isArmed: computed(() => isSettled.value && isCalm.value), ifArmed, rearm }
}
