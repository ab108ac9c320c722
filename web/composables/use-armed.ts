import { onMounted, onUnmounted, type Ref, ref, watch } from 'vue'

/** What has just moved under a thumb or a pointer takes no decision yet. */
const ARM_AFTER_MS = 400

export interface Armed {
  /** For `aria-disabled`: a button that is disabled altogether loses the keyboard's focus. */
  isArmed: Readonly<Ref<boolean>>
  ifArmed(action: () => void): void
  rearm(): void
}

/** Unarmed for a moment after it came, and after each change of `arrangement`: all that says what stands where. */
export function useArmed(arrangement: () => string): Armed {
  const isArmed = ref(false)
  let timer: ReturnType<typeof setTimeout>
  function rearm(): void {
    isArmed.value = false
    clearTimeout(timer)
    timer = setTimeout(() => {
      isArmed.value = true
    }, ARM_AFTER_MS)
  }
  onMounted(rearm)
  onUnmounted(() => clearTimeout(timer))
  // Before the page is drawn anew: nothing is ever in its new place and armed.
  watch(arrangement, rearm)
  const ifArmed = (action: () => void) => {
    if (isArmed.value) action()
  }
  return { isArmed, ifArmed, rearm }
}
