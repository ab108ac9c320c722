import { type Ref, ref } from 'vue'

/** Clicks that follow each other faster than this are one burst. Only what the first click hit reacts. */
export const BURST_MS = 700

const calm = ref(true)
/** Whether no pointer button was pressed in the last moment, anywhere on the page. */
export const isCalm: Readonly<Ref<boolean>> = calm

/** The value of `calm` just before the pointer button was pressed: a click belongs to the press that began it. */
let wasCalm = true
let isAlone = true
let isByPointer = false
let timer: ReturnType<typeof setTimeout> | undefined

/** Whether the click or key that is being handled is not part of a burst. Keys and assistive technology click without a pointer. */
export const isDeliberate = (): boolean => isAlone
/** Whether a pointer caused the click that is being handled. */
export const isPointed = (): boolean => isByPointer

/** Where the pointer was last seen. A finger has no position between two taps, so that of its last tap counts. */
let seenAt: { x: number; y: number } | null = null
/** Moves while a button is pressed are smaller than this, and so is the distance of two taps at the same place. */
const MOVED_PX = 10
const NOWHERE = { x: Number.POSITIVE_INFINITY, y: 0 }
const waiting = new Set<Rest>()

interface Rest {
  from: { x: number; y: number }
  onMoved: () => void
}

function notice({ clientX, clientY }: PointerEvent): void {
  seenAt = { x: clientX, y: clientY }
  for (const rest of [...waiting]) {
    if (Math.hypot(clientX - rest.from.x, clientY - rest.from.y) < MOVED_PX) continue
    waiting.delete(rest)
    rest.onMoved()
  }
}
addEventListener('pointermove', notice, { capture: true, passive: true })

/** Calls back once, when the pointer has left the place where it is now. Call the result to stop waiting. */
export function onceMoved(onMoved: () => void): () => void {
  const rest = { from: seenAt ?? NOWHERE, onMoved }
  waiting.add(rest)
  return () => waiting.delete(rest)
}

/** The button or link under the pointer. */
export const pointedAt = (): Element | null =>
  seenAt && (document.elementFromPoint(seenAt.x, seenAt.y)?.closest('button, a') ?? null)

addEventListener(
  'pointerdown',
  (event) => {
    notice(event)
    wasCalm = calm.value
    calm.value = false
    clearTimeout(timer)
    timer = setTimeout(() => {
      calm.value = true
    }, BURST_MS)
  },
  { capture: true }
)
addEventListener(
  'click',
  ({ detail }) => {
    isByPointer = detail !== 0
    isAlone = isByPointer ? wasCalm && detail === 1 : calm.value
  },
  { capture: true }
)
addEventListener(
  'keydown',
  () => {
    isByPointer = false
    isAlone = calm.value
  },
  { capture: true }
)
