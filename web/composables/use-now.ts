import { onUnmounted, type Ref, ref } from 'vue'

/** The time, moving on every `everyMs` for as long as the component lives. */
export function useNow(everyMs = 1000): Ref<number> {
  const now = ref(Date.now())
  const timer = setInterval(() => {
    now.value = Date.now()
  }, everyMs)
  onUnmounted(() => clearInterval(timer))
  return now
}
