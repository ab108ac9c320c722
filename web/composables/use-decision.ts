import { onMounted, onUnmounted, type Ref, ref } from 'vue'
import type { CallView } from '../stores/call-views.ts'

/** A card that has just moved under a thumb or a pointer takes no decision yet. */
const ARM_AFTER_MS = 400

/** What every card with a question has: it is armed a moment after it came, and single keys answer it while it has the focus. */
export function useDecision(
  view: CallView,
  actions: Record<string, () => void>
): { isArmed: Ref<boolean>; onKey(event: KeyboardEvent): void } {
  const isArmed = ref(false)
  let timer: ReturnType<typeof setTimeout>
  onMounted(() => {
    timer = setTimeout(() => {
      isArmed.value = true
    }, ARM_AFTER_MS)
  })
  onUnmounted(() => clearTimeout(timer))

  function onKey(event: KeyboardEvent) {
    const inField = event.target instanceof HTMLElement && event.target.matches('input, textarea')
    if (inField || event.ctrlKey || event.metaKey || event.altKey || view.mode !== 'decide' || !isArmed.value) return
    const action = actions[event.key.toLowerCase()]
    if (!action) return
    event.preventDefault()
    action()
  }
  return { isArmed, onKey }
}
