import { type Ref, ref } from 'vue'

/** Clicks that follow each other faster than this are one burst. Only what the first click hit reacts. */
export const BURST_MS = 700

const calm = ref(true)
/** Whether no pointer button was pressed in the last moment, anywhere on the page. */
export const isCalm: Readonly<Ref<boolean>> = calm

/** The value of `calm` just before the pointer button was pressed: a click belongs to the press that began it. */
let wasCalm = true
let isAlone = true
let timer: ReturnType<typeof setTimeout> | undefined

/** Whether the click or key that is being handled is not part of a burst. Keys and assistive technology click without a pointer. */
export const isDeliberate = (): boolean => isAlone

addEventListener(
  'pointerdown',
  () => {
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
    isAlone = detail === 0 ? calm.value : wasCalm && detail === 1
  },
  { capture: true }
)
addEventListener(
  'keydown',
  () => {
    isAlone = calm.value
  },
  { capture: true }
)
