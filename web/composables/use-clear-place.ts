import { onUnmounted, type Ref, ref, watch } from 'vue'

const GAP_PX = 8
const EVERY_MS = 100
/** Elements that must stay visible: banners, alerts, and the title of a dialog. */
const BANNERS = '[data-banner], [role=alert], [role=alertdialog], dialog[open] header'

/**
 * How far a stack at the top has to move down so that it covers no banner. 0 if there is no free place on the screen. Looks again
 * and again while the stack is in use, because a banner can come or move at any time.
 */
export function useClearPlace(stack: Readonly<Ref<HTMLElement | null>>, isUsed: () => boolean): Readonly<Ref<number>> {
  const shift = ref(0)
  function look(): void {
    const box = stack.value?.getBoundingClientRect()
    if (!box || box.height === 0) {
      shift.value = 0
      return
    }
    const start = box.top - shift.value
    const top = freeTop(start, box, bannersBeside(box, stack.value))
    shift.value = top + box.height > innerHeight ? 0 : top - start
  }
  let timer: ReturnType<typeof setInterval>
  watch(
    isUsed,
    (used) => {
      clearInterval(timer)
      if (used) timer = setInterval(look, EVERY_MS)
      look()
    },
    { flush: 'post' }
  )
  onUnmounted(() => clearInterval(timer))
  return shift
}

function bannersBeside({ left, right }: DOMRect, stack: HTMLElement | null): DOMRect[] {
  return [...document.querySelectorAll(BANNERS)]
    .filter((banner) => !stack?.contains(banner) && banner.checkVisibility())
    .map((banner) => banner.getBoundingClientRect())
    .filter((rect) => rect.height > 0 && rect.left < right && rect.right > left)
    .toSorted((a, b) => a.top - b.top)
}

function freeTop(start: number, { height }: DOMRect, banners: readonly DOMRect[]): number {
  let top = start
  for (const { top: above, bottom } of banners)
    if (above < top + height + GAP_PX && bottom + GAP_PX > top) top = bottom + GAP_PX
  return top
}
