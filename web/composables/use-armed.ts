import { computed, onMounted, onUnmounted, type Ref, ref, watch } from 'vue'
import { BURST_MS, isCalm, isDeliberate } from './page-pointer.ts'
import { useMoves } from './use-moves.ts'

export interface Armed {
  /** For `aria-disabled`: a button that is disabled altogether loses the keyboard's focus. */
  isArmed: Readonly<Ref<boolean>>
  /** For the handler of a click. */
  ifArmed(action: () => void): void
  rearm(): void
}

/**
 * Unarmed for a moment after it came, after each change of `arrangement` (all that says what stands where), after `place` has moved
 * on the screen though nobody scrolled, and after each click anywhere: what has just moved under a thumb or a pointer takes no decision, and a click of a burst decides nothing.
 */
export function useArmed(arrangement: () => string, place?: Readonly<Ref<HTMLElement | null>>): Armed {
  const isSettled = ref(false)
  let timer: ReturnType<typeof setTimeout>
  function rearm(): void {
    isSettled.value = false
    clearTimeout(timer)
    timer = setTimeout(() => {
      isSettled.value = true
    }, BURST_MS)
  }
  onMounted(rearm)
  onUnmounted(() => clearTimeout(timer))
  // Before the page is drawn anew: nothing is ever in its new place and armed.
  watch(arrangement, rearm)
  const moves = place && useMoves(place, rearm)
  const ifArmed = (action: () => void) => {
    moves?.look()
    if (isSettled.value && isDeliberate()) action()
  }
  return { isArmed: computed(() => isSettled.value && isCalm.value), ifArmed, rearm }
}
