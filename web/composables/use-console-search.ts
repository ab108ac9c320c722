import { computed, onUnmounted, ref, shallowRef, watch } from 'vue'
import type { AnsiLines } from '../text/console/ansi-lines.ts'
import { findText } from '../text/console/find-text.ts'
import type { Hit } from '../text/console/row-pieces.ts'

const PAUSE_MS = 200

/** Searches console output, which may still grow. `show` scrolls to a row. */
export function useConsoleSearch(lines: () => AnsiLines, version: () => number, show: (row: number) => void) {
  const isOpen = ref(false)
  const wanted = ref('')
  const result = shallowRef(findText(lines(), ''))
  const current = ref(0)
  let timer: ReturnType<typeof setTimeout> | undefined

  function look(): void {
    timer = undefined
    result.value = findText(lines(), isOpen.value ? wanted.value : '')
    current.value = Math.min(current.value, Math.max(0, result.value.found.length - 1))
  }
  function to(index: number): void {
    const { found } = result.value
    if (found.length === 0) return
    current.value = (index + found.length) % found.length
    show(found[current.value]?.row ?? 0)
  }
  watch([wanted, isOpen, lines], () => {
    clearTimeout(timer)
    current.value = 0
    look()
    if (wanted.value !== '') to(0)
  })
  watch(version, () => {
    if (isOpen.value && wanted.value !== '') timer ??= setTimeout(look, PAUSE_MS)
  })
  onUnmounted(() => clearTimeout(timer))

  const hits = computed(() => {
    const byRow = new Map<number, Hit[]>()
    for (const [at, { row, from, to }] of result.value.found.entries())
      byRow.set(row, [...(byRow.get(row) ?? []), { from, to, isCurrent: at === current.value }])
    return byRow
  })
  const words = computed(() => {
    const { found, isCut } = result.value
    if (wanted.value === '') return ''
    if (found.length === 0) return 'Not found'
    return `${(current.value + 1).toLocaleString()} of ${found.length.toLocaleString()}${isCut ? ' or more' : ''}`
  })
  return { isOpen, wanted, hits, words, next: () => to(current.value + 1), previous: () => to(current.value - 1) }
}
