import { onMounted, onUnmounted } from 'vue'

/** Handles files that are dropped anywhere on the page. Otherwise the browser would leave the page and open them. */
export function useFileDrops(take: (files: File[]) => void): void {
  function onDrag(event: DragEvent): void {
    if (event.defaultPrevented || !event.dataTransfer?.types.includes('Files')) return
    event.preventDefault()
    if (event.type === 'drop') take([...event.dataTransfer.files])
  }
  onMounted(() => {
    addEventListener('dragover', onDrag)
    addEventListener('drop', onDrag)
  })
  onUnmounted(() => {
    removeEventListener('dragover', onDrag)
    removeEventListener('drop', onDrag)
  })
}
