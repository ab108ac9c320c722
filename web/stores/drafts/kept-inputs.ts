import { defineStore } from 'pinia'
import { ref, watch } from 'vue'
import { newId } from '../../new-id.ts'
import { recall, remember } from '../../remembered.ts'
import { INPUT } from '../call-views.ts'
import { useSession } from '../session.ts'

interface KeptInput {
  id: string
  /** Says what the input was for, and why it was not sent. */
  about: string
  text: string
}

const MAX_KEPT = 20
const MAX_STORED_CHARS = 200_000

/**
 * Keeps the text that a person was typing into a card or a dialog that is gone: it was decided elsewhere, or the turn has ended. The
 * text stays on the page in a field of its own, which takes over the focus. So the next keys go there too, and nothing of it is sent to
 * the model by accident.
 */
export const useKeptInputs = defineStore('kept-inputs', () => {
  const session = useSession()
  const items = ref<KeptInput[]>([])
  /** The one that the person goes on typing into. */
  const focused = ref('')

  watch(
    () => session.sessionId,
    (id) => {
      items.value = JSON.parse(recall(keyOf(id), 'tab') ?? '[]') as KeptInput[]
    },
    { immediate: true, flush: 'sync' }
  )
  watch(
    items,
    (kept) => {
      const stored = JSON.stringify(kept)
      const isStored = kept.length > 0 && stored.length <= MAX_STORED_CHARS
      remember(keyOf(session.sessionId), isStored ? stored : null, 'tab')
    },
    { deep: true }
  )

  /** Call it before the page is drawn anew: `place` selects the card or dialog that goes, and its field may have the focus. */
  function keep(about: string, text: string, place: string): void {
    const field = document.activeElement
    const isTyping = field?.matches('input, textarea') === true && field.closest(place) !== null
    if (text.trim() === '' && !isTyping) return
    const item = { id: newId(), about, text }
    items.value = [...items.value, item].slice(-MAX_KEPT)
    if (isTyping) focused.value = item.id
  }
  function drop(id: string): void {
    items.value = items.value.filter((item) => item.id !== id)
  }
  return { items, focused, keep, drop }
})

const keyOf = (sessionId: string) => `${INPUT}kept:${sessionId}`
