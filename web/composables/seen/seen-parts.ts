/**
 * Which parts of a card the person has seen. Boxes that scroll hide a part of what would be approved, so a card is approved only if the end
 * of each of its boxes was in view since the text last changed. A card provides the list, and each box in it adds itself.
 */
import {
  computed,
  type InjectionKey,
  inject,
  onMounted,
  onUnmounted,
  provide,
  type Ref,
  ref,
  shallowReactive,
  shallowRef
} from 'vue'
import { count } from '../../text/format.ts'
import { isInView } from './in-view.ts'

interface SeenPart {
  label(): string
  isSeen: Readonly<Ref<boolean>>
  look(): void
  /** Whether a button in it, such as “Show all”, has more to show. */
  isCut(): boolean
  linesBelow(): number
  show(hasKeyboard: boolean): void
}
interface Card {
  parts: Set<SeenPart>
  /** The texts of parts of which the end was in view. It outlives the elements: rows far from the screen are not drawn. */
  seenTexts: Set<string>
}
const CARD: InjectionKey<Card> = Symbol('card')
/** Marks buttons that show what was left out. */
export const CUT = '[data-cut]'

/** For a card. `ifSeen` runs the approval if all parts were seen; otherwise it shows the first that was not, and `unseenHint` says so. */
export function useSeenParts(seenTexts: Set<string>) {
  const parts = shallowReactive(new Set<SeenPart>())
  provide(CARD, { parts, seenTexts })
  const unseen = computed(() => [...parts].find(({ isSeen }) => !isSeen.value))
  const refused = shallowRef<SeenPart>()
  const refusal = ref('')
  function ifSeen(action: () => void, hasKeyboard: boolean): void {
    for (const part of parts) part.look()
    const part = unseen.value
    if (!part) {
      action()
      return
    }
    refused.value = part
    refusal.value = unseenWords(part)
    part.show(hasKeyboard)
  }
  const unseenHint = computed(() => (unseen.value && unseen.value === refused.value ? refusal.value : ''))
  return { ifSeen, isAllSeen: computed(() => !unseen.value), unseenHint }
}

function unseenWords(part: SeenPart): string {
  if (part.isCut()) return `Not all of this is shown: ${part.label()}. Show the rest, read to its end, then decide.`
  const lines = part.linesBelow()
  const missing = lines === 0 ? 'the end' : lines === 1 ? 'the last line' : `the last ${count(lines, 'line')}`
  return `You had not seen ${missing} of this: ${part.label()}. Read to its end, then decide.`
}

interface Box {
  label: () => string
  view: Readonly<Ref<HTMLElement | null>>
  content: Readonly<Ref<HTMLElement | null>>
  /** The last few pixels of the content. */
  end: Readonly<Ref<HTMLElement | null>>
}

/** For a box in a card; elsewhere nothing is tracked. The box keeps its height: a card that grew under the pointer would move its buttons. */
export function useSeenPart({ label, view, content, end }: Box): void {
  const card = inject(CARD, null)
  if (!card) return
  const { parts, seenTexts } = card
  const isSeen = ref(false)
  const text = () => content.value?.textContent ?? ''
  const cut = () => content.value?.querySelector<HTMLElement>(CUT)

  function look(): void {
    if (end.value && !cut() && isInView(end.value, 0)) seenTexts.add(text())
    isSeen.value = seenTexts.has(text())
  }
  const ends = new IntersectionObserver(look, { threshold: [0, 1] })
  const changes = new MutationObserver(look)

  const part: SeenPart = {
    ...{ label, isSeen, look },
    isCut: () => Boolean(cut()),
    linesBelow() {
      const { scrollHeight, scrollTop, clientHeight } = view.value ?? document.body
      const line = content.value?.firstElementChild ?? document.body
      return Math.round(
        (scrollHeight - scrollTop - clientHeight) / Number.parseFloat(getComputedStyle(line).lineHeight)
      )
    },
    show(hasKeyboard) {
      const place = cut() ?? view.value
      place?.scrollIntoView({ block: 'nearest' })
      // So the arrows read on, or Enter shows the rest.
      if (hasKeyboard) place?.focus({ preventScroll: true })
    }
  }
  parts.add(part)
  onMounted(() => {
    look()
    if (end.value) ends.observe(end.value)
    if (content.value) changes.observe(content.value, { childList: true, characterData: true, subtree: true })
  })
  onUnmounted(() => {
    parts.delete(part)
    ends.disconnect()
    changes.disconnect()
  })
}
