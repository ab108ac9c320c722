import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { ApprovalAnswer, ApprovalCard } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { useCallViews } from './call-views.ts'
import { useNotices } from './notices.ts'

const EVERY_MS = 2000

/** Calls of outside clients that wait for a person at this page. Asked for again and again: they come from other processes. */
export const useInbox = defineStore('inbox', () => {
  const notices = useNotices()
  const views = useCallViews()
  const cards = ref<ApprovalCard[]>([])
  const deciding = ref(new Set<string>())
  const isShown = ref(false)
  /** Added to this browser's clock, it is the server's. */
  const clockOffset = ref(0)
  let isWatching = false
  /** Changes with all that moves the cards about. */
  const arrangement = computed(() =>
    cards.value.map(({ id }) => `${id} ${views.viewOf(id).mode} ${deciding.value.has(id)}`).join()
  )

  async function load(): Promise<void> {
    try {
      const { approvals, now } = await api.approvals()
      cards.value = approvals
      clockOffset.value = now - Date.now()
    } catch {
      // The page says by other means that the server is away; what was there may have been answered meanwhile.
      cards.value = []
    }
  }

  /** For as long as the page is open, however many buttons show it. */
  function watchCards(): void {
    if (isWatching) return
    isWatching = true
    const again = () => void load().finally(() => setTimeout(again, EVERY_MS))
    again()
  }

  async function answer(card: ApprovalCard, given: ApprovalAnswer): Promise<void> {
    if (deciding.value.has(card.id)) return
    deciding.value.add(card.id)
    await notices.attempt(() => api.answerApproval(card, given))
    await load()
    deciding.value.delete(card.id)
  }

  return { cards, deciding, arrangement, isShown, clockOffset, watchCards, answer }
})
