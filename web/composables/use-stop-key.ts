import { onUnmounted, type Ref, ref, watch } from 'vue'
import { useComposer } from '../stores/composer.ts'
import { useSession } from '../stores/session.ts'
import { PAUSE_MS } from './decision-keys.ts'

/** Long enough to read the question; later, an Escape is a new one. */
const ASK_MS = 15_000
const MODIFIERS = ['Shift', 'Control', 'Alt', 'Meta', 'CapsLock']

export interface StopKey {
  isAsking: Readonly<Ref<boolean>>
  /** Stop means stop; anything else takes the question away. */
  answer(isStop: boolean): void
  onKey(event: KeyboardEvent): void
}

/** Escape stops the turn, with all that waits in it: the first one asks, and only one more, while the question is shown, stops. */
export function useStopKey(): StopKey {
  const session = useSession()
  const composer = useComposer()
  const isAsking = ref(false)
  let askedAt = 0
  let timer: ReturnType<typeof setTimeout>

  function ask() {
    isAsking.value = true
    askedAt = performance.now()
    clearTimeout(timer)
    timer = setTimeout(() => answer(false), ASK_MS)
  }
  function answer(isStop: boolean) {
    clearTimeout(timer)
    isAsking.value = false
    if (isStop) void composer.stop()
  }
  function onKey({ key, repeat, isComposing, defaultPrevented }: KeyboardEvent) {
    // Any other key, also one that a card has swallowed, and an Escape that had another meaning.
    const isOther = key !== 'Escape' || isComposing || defaultPrevented
    if (isOther) return void (isAsking.value && !MODIFIERS.includes(key) && answer(false))
    if (repeat || session.transcript.turnId === null) return
    if (!isAsking.value) ask()
    else if (performance.now() - askedAt >= PAUSE_MS) answer(true)
    // Too soon to have read the question: the pause starts anew, so that pressing faster never helps.
    else askedAt = performance.now()
  }
  watch(
    () => session.transcript.turnId,
    () => answer(false)
  )
  onUnmounted(() => clearTimeout(timer))
  return { isAsking, answer, onKey }
}
