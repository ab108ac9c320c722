import { onUnmounted, type Ref, watch } from 'vue'

/** Less is not seen, and comes with rounding. */
const SEEN_PX = 2
/** The buttons are what one aims at. */
const AIM = '[data-approve], [type=submit]'

interface Place {
  aim: Element
  left: number
  top: number
  /** Scrolling alone does not change it. */
  unscrolled: number
}

/**
 * Calls back when a card stands elsewhere on the screen and nobody scrolled: output above it grew, a banner came, the window changed.
 * `look` compares at once, for causes that nothing tells of.
 */
export function useMoves(card: Readonly<Ref<HTMLElement | null>>, onMoved: () => void): { look(): void } {
  let box: HTMLElement | null = null
  let place: Place | null = null

  function measure(): Place | null {
    const element = card.value
    if (!element) return null
    const aim = element.querySelector(AIM) ?? element
    const { left, top } = aim.getBoundingClientRect()
    return { aim, left, top, unscrolled: top + (box?.scrollTop ?? 0) }
  }
  /** Where sizes have changed, the page itself may have scrolled because of that; else only the person does, or what helps them. */
  function look(isResized = false): void {
    const before = place
    place = measure()
    if (!before || !place || before.aim !== place.aim) return
    const isSame = isResized ? near(before.top, place.top) : near(before.unscrolled, place.unscrolled)
    if (!isSame || !near(before.left, place.left)) onMoved()
  }
  const sizes = new ResizeObserver(() => look(true))
  watch(card, (element) => {
    sizes.disconnect()
    place = null
    if (!element) return
    box = scrollerOf(element)
    for (const watched of [element, box, ...(box?.children ?? [])]) if (watched) sizes.observe(watched)
    place = measure()
  })
  const onScroll = () => look()
  addEventListener('scroll', onScroll, { capture: true, passive: true })
  onUnmounted(() => {
    sizes.disconnect()
    removeEventListener('scroll', onScroll, { capture: true })
  })
  return { look: () => look() }
}

const near = (a: number, b: number) => Math.abs(a - b) <= SEEN_PX

function scrollerOf(element: HTMLElement): HTMLElement | null {
  for (let box = element.parentElement; box; box = box.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(box).overflowY)) return box
  return null
}
