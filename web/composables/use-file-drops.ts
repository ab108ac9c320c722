import { onMounted, onUnmounted, type Ref, ref } from 'vue'

/**
 * Handles files that are dropped anywhere on the page. Otherwise the browser would leave the page and open them. Returns whether files
 * are being dragged over it, to show where they go; a part of the page that handles them itself is excepted.
 */
export function useFileDrops(canTake: () => boolean, take: (files: File[]) => void): Ref<boolean> {
  const isOver = ref(false)
  function onDrag(event: DragEvent): void {
    const isTaken = event.defaultPrevented || !event.dataTransfer?.types.includes('Files')
    isOver.value = !isTaken && event.type === 'dragover' && canTake()
    if (isTaken) return
    event.preventDefault()
    if (event.type === 'drop' && canTake()) take([...(event.dataTransfer?.files ?? [])])
  }
  /** It left the window; moves between parts of the page have a related target. */
  function onLeave({ relatedTarget }: DragEvent): void {
    if (relatedTarget === null) isOver.value = false
  }
  onMounted(() => {
    addEventListener('dragover', onDrag)
    addEventListener('drop', onDrag)
    addEventListener('dragleave', onLeave)
  })
  onUnmounted(() => {
    removeEventListener('dragover', onDrag)
    removeEventListener('drop', onDrag)
    removeEventListener('dragleave', onLeave)
  })
  return isOver
}
