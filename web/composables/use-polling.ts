import { onUnmounted } from 'vue'

/** Asks again and again while someone looks; never before the answer, which on a slow line would queue up and hold up the rest. */
export function usePolling(ask: () => Promise<void>, everyMs: number): void {
  let isOver = false
  let timer = setTimeout(again, everyMs)
  async function again() {
    if (document.visibilityState === 'visible') await ask()
    if (!isOver) timer = setTimeout(again, everyMs)
  }
  onUnmounted(() => {
    isOver = true
    clearTimeout(timer)
  })
}
