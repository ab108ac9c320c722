import { onUnmounted } from 'vue'

/** Polls while the page is visible. Waits for each answer first: on a slow line requests would pile up. */
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
