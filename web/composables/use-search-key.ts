import { onUnmounted } from 'vue'

/** Alt+F opens the list of sessions and goes to the search. The browser's own search misses messages that are not drawn. */
export function useSearchKey(openList: () => Promise<unknown>): void {
  async function onKey(event: KeyboardEvent): Promise<void> {
    const { altKey, ctrlKey, metaKey, code } = event
    if (!altKey || ctrlKey || metaKey || code !== 'KeyF' || document.querySelector('dialog[open]')) return
    event.preventDefault()
    await openList()
    // By then, what was loaded is drawn.
    await new Promise(requestAnimationFrame)
    const field = document.querySelector<HTMLInputElement>('nav[aria-label=Sessions] input[type=search]')
    field?.focus()
    field?.select()
  }
  document.addEventListener('keydown', onKey)
  onUnmounted(() => document.removeEventListener('keydown', onKey))
}
