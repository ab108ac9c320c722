/**
 * Draws only those rows of a long list that are near the screen. Rows may have any height and may change it. If rows above turn out
 * taller than estimated, the visible rows stay in place. At the end, the list follows new rows; after scrolling up, it does not.
 */
import { computed, nextTick, onUnmounted, type Ref, ref, watch } from 'vue'

interface Options {
  scroller: Readonly<Ref<HTMLElement | null>>
  /** The content of the scroller. */
  content: Readonly<Ref<HTMLElement | null>>
  /** Stable keys of the rows, in order. */
  keys: () => readonly (string | number)[]
  estimate: (index: number) => number
  /** Rows that someone may be about to click: the first visible one stays in place. */
  held: () => readonly (string | number)[]
  /** While this is true, every drawn row stays drawn: one of them may have opened a dialog. */
  isPinned: () => boolean
}
interface Range {
  start: number
  end: number
}
const OVERSCAN_PX = 600
const AT_END_PX = 32
/** A scroll this soon after a wheel, touch or key event is the person's. The browser itself scrolls when heights change. */
const INTENT_MS = 1000
const INTENTS = ['wheel', 'touchmove', 'keydown', 'pointerdown']

export function useVirtualRows({ scroller, content, keys, estimate, held, isPinned }: Options) {
  const heights = new Map<string | number, number>()
  const measured = ref(0)
  const top = ref(0)
  const viewport = ref(800)
  const isAtEnd = ref(true)
  const rowOf = new WeakMap<Element, string | number>()
  const elements = new Map<string | number, Element>()
  let lastTop = 0
  let lastIntent = Number.NEGATIVE_INFINITY

  const offsets = computed(() => {
    void measured.value
    const all = keys()
    const result = new Float64Array(all.length + 1)
    for (let at = 0; at < all.length; at++) {
      result[at + 1] = (result[at] ?? 0) + (heights.get(all[at] ?? '') ?? estimate(at))
    }
    return result
  })
  const total = computed(() => offsets.value.at(-1) ?? 0)
  const range = computed((before?: Range): Range => {
    const last = offsets.value.length - 1
    const start = Math.max(0, firstAfter(offsets.value, top.value - OVERSCAN_PX) - 1)
    const end = Math.min(last, firstAfter(offsets.value, top.value + viewport.value + OVERSCAN_PX))
    if (!before || !isPinned()) return { start, end }
    return { start: Math.min(start, before.start), end: Math.max(end, Math.min(last, before.end)) }
  })
  const before = computed(() => offsets.value[range.value.start] ?? 0)
  const after = computed(() => total.value - (offsets.value[range.value.end] ?? 0))

  const resizes = new ResizeObserver((entries) => {
    const place = new Map(keys().map((key, at) => [key, at]))
    const heldAt = firstHeld(place)
    let shift = 0
    let isChanged = false
    for (const { target, borderBoxSize } of entries) {
      const key = rowOf.get(target)
      const height = borderBoxSize[0]?.blockSize ?? 0
      const at = key === undefined ? undefined : place.get(key)
      if (key === undefined || at === undefined || height === 0 || elements.get(key) !== target) continue
      const known = heights.get(key) ?? estimate(at)
      if (Math.abs(known - height) < 0.5) continue
      if (at < heldAt || (offsets.value[at] ?? 0) + known <= lastTop) shift += height - known
      heights.set(key, height)
      isChanged = true
    }
    if (!isChanged) return
    measured.value += 1
    void nextTick().then(() => settle(shift))
  })

  function firstHeld(place: Map<string | number, number>): number {
    const isSeen = (at: number) =>
      (offsets.value[at + 1] ?? 0) > lastTop && (offsets.value[at] ?? 0) < lastTop + viewport.value
    return (
      held()
        .flatMap((key) => place.get(key) ?? [])
        .find(isSeen) ?? 0
    )
  }

  /** Called after rows changed their height: keeps the end visible, or the rows that were being read. */
  function settle(shift: number): void {
    const view = scroller.value
    if (!view) return
    if (isAtEnd.value) view.scrollTop = view.scrollHeight
    else if (shift !== 0) view.scrollTop = lastTop + shift
    lastTop = view.scrollTop
    top.value = lastTop
  }

  function onScroll(): void {
    const view = scroller.value
    if (!view) return
    const now = view.scrollTop
    if (view.scrollHeight - now - view.clientHeight <= AT_END_PX) isAtEnd.value = true
    else if (now < lastTop - 1 && performance.now() - lastIntent < INTENT_MS) isAtEnd.value = false
    lastTop = now
    top.value = now
  }

  function onIntent(event: Event): void {
    if (!(event instanceof WheelEvent) || event.deltaY < 0) lastIntent = performance.now()
  }

  /** Bind this as the ref of each drawn row. */
  function measure(key: string | number, element: unknown): void {
    const old = elements.get(key)
    if (old === element) return
    if (old) resizes.unobserve(old)
    if (!(element instanceof Element)) {
      elements.delete(key)
      return
    }
    elements.set(key, element)
    rowOf.set(element, key)
    resizes.observe(element)
  }

  function toEnd(): void {
    isAtEnd.value = true
    lastIntent = Number.NEGATIVE_INFINITY
    settle(0)
  }

  async function toRow(key: string | number): Promise<void> {
    const at = keys().indexOf(key)
    if (at < 0) return
    // The first jump uses estimated heights. Once the rows there are drawn and measured, the next one is exact. The estimated end is
    // not the end: a list that followed it would jump away from the row.
    for (let round = 0; round < 3; round++) {
      if (scroller.value) scroller.value.scrollTop = offsets.value[at] ?? 0
      onScroll()
      isAtEnd.value = false
      await new Promise(requestAnimationFrame)
    }
    onScroll()
  }

  // If the height of the view or of its content changes, a list at its end stays at its end.
  const sizes = new ResizeObserver(() => {
    viewport.value = scroller.value?.clientHeight ?? viewport.value
    settle(0)
  })
  watch([scroller, content], ([view, inside]) => {
    sizes.disconnect()
    if (!view) return
    sizes.observe(view)
    if (inside) sizes.observe(inside)
    for (const type of INTENTS) view.addEventListener(type, onIntent, { passive: true })
  })
  onUnmounted(() => {
    resizes.disconnect()
    sizes.disconnect()
  })

  return { range, before, after, isAtEnd, onScroll, measure, toEnd, toRow }
}

/** Index of the first offset greater than `value`. */
function firstAfter(offsets: Float64Array, value: number): number {
  let low = 0
  let high = offsets.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((offsets[middle] ?? 0) > value) high = middle
    else low = middle + 1
  }
  return low
}
