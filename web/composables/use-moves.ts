import { onUnmounted, type Ref, watch } from 'vue'

/** Smaller moves are rounding errors, and nobody sees them. */
const SEEN_PX = 2
/** The elements that people aim at. */
const AIM = '[data-approve], [type=submit]'

interface Place {
  aim: Element
  left: number
  top: number
  /** The position without scrolling. */
  unscrolled: number
}

/**
 * Calls back when a card has moved on the screen although nobody scrolled: output above it grew, a banner appeared, the window changed.
 * `look` compares at once, for moves that cause no event.
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
  /** After a change of size the page may have scrolled by itself; otherwise only the person scrolls. */
  function look(isResized = false): void {
    const before = place
    place = measure()
    if (!before || !place || before.aim !== place.aim) return
    // Sticky buttons stay in their place on the screen while the card is scrolled.
    const isScrolled = !isResized && near(before.unscrolled, place.unscrolled)
    const isSame = isScrolled || near(before.top, place.top)
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
