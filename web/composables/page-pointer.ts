import { type Ref, ref } from 'vue'

/** Clicks that follow each other faster than this are one burst: what they began on decides, and nothing that comes under them later. */
export const BURST_MS = 700

const calm = ref(true)
/** No button of a pointer was pressed for a moment, anywhere on the page. */
export const isCalm: Readonly<Ref<boolean>> = calm

/** As it was just before the pointer's button went down: a click belongs to the press that began it. */
let wasCalm = true
let isAlone = true
let timer: ReturnType<typeof setTimeout> | undefined

/** Whether the click or key that is being handled stands alone. Keys and assistive technology click without a press of a pointer. */
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
