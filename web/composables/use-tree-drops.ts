import { ref } from 'vue'

/**
 * Drags in the tree of files: files from outside are uploaded into the folder under the pointer, and a row of the tree is moved there.
 * Rows name their folder in `data-folder`; everything else means the workspace itself, `''`.
 */
export function useTreeDrops(take: {
  upload(files: File[], folder: string): void
  move(path: string, folder: string): void
}) {
  /** The folder that would get it; null if nothing is being dragged here. */
  const over = ref<string | null>(null)
  const dragged = ref<string | null>(null)

  function folderAt({ target }: DragEvent): string {
    return (target instanceof Element && target.closest<HTMLElement>('[data-folder]')?.dataset.folder) || ''
  }
  function onDragStart(event: DragEvent, path: string): void {
    dragged.value = path
    if (!event.dataTransfer) return
    event.dataTransfer.effectAllowed = 'move'
    event.dataTransfer.setData('text/plain', path)
  }
  function onDragEnd(): void {
    dragged.value = over.value = null
  }
  function onDragOver(event: DragEvent): void {
    event.preventDefault()
    over.value = folderAt(event)
  }
  /** Ignores moves between parts of the panel. */
  function onDragLeave({ currentTarget, relatedTarget }: DragEvent): void {
    const isInside =
      currentTarget instanceof Node && relatedTarget instanceof Node && currentTarget.contains(relatedTarget)
    if (!isInside) over.value = null
  }
  function onDrop(event: DragEvent): void {
    event.preventDefault()
    const [folder, path] = [folderAt(event), dragged.value]
    onDragEnd()
    if (path !== null) take.move(path, folder)
    else if (event.dataTransfer) take.upload([...event.dataTransfer.files], folder)
  }
  return { over, dragged, onDragStart, onDragEnd, onDragOver, onDragLeave, onDrop }
}
