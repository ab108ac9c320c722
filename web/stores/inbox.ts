import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { ApprovalAnswer, ApprovalCard } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { onNews } from '../news.ts'
import { useCallViews } from './call-views.ts'
import { useKeptInputs } from './drafts/kept-inputs.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** While the server tells of changes, this is only a precaution. */
const EVERY_MS = 20_000
/** Without a connection nobody tells of changes. */
const ALONE_EVERY_MS = 2000
/** Number of failed polls before the cards are removed. Until then they stay, because someone may be reading them. */
const MAX_FAILURES = 2

/** Calls of outside clients that need approval. The server tells when they change. */
export const useInbox = defineStore('inbox', () => {
  const notices = useNotices()
  const views = useCallViews()
  const kept = useKeptInputs()
  const session = useSession()
  const cards = ref<ApprovalCard[]>([])
  const deciding = ref(new Set<string>())
  const isShown = ref(false)
  /** Offset from this browser's clock to the server's. */
  const clockOffset = ref(0)
  const isAway = ref(false)
  let failures = 0
  let isWatching = false
  /** Changes whenever cards may move on the screen. */
  const arrangement = computed(() =>
    cards.value.map(({ id }) => `${id} ${views.viewOfInbox(id).mode} ${deciding.value.has(id)}`).join()
  )

  let requests = 0
  /** Ignores a reply that a later one has overtaken. */
  async function load(): Promise<void> {
    const request = ++requests
    try {
      const { approvals, now } = await api.approvals()
      if (request !== requests) return
      // Reuse known cards, which never change: drawing many large ones with every poll would keep the page busy.
      const known = new Map(cards.value.map((card) => [card.id, card]))
      cards.value = approvals.map((card) => known.get(card.id) ?? card)
      for (const { id } of cards.value) known.delete(id)
      for (const id of known.keys()) {
        keepReason(id)
        views.forgetInbox(id)
      }
      clockOffset.value = now - Date.now()
      failures = 0
    } catch {
      failures += 1
    }
    isAway.value = failures > MAX_FAILURES
    if (isAway.value) cards.value = []
  }

  function keepReason(id: string): void {
    const { mode, reason } = views.viewOfInbox(id)
    if (mode !== 'reject' || deciding.value.has(id)) return
    const about = 'Your reason was not sent: the call was decided elsewhere, or its time was over.'
    kept.keep(about, reason, `[data-card="${CSS.escape(id)}"]`)
  }

  /** Polls once for the whole page, however many components use it. */
  function watchCards(): void {
    if (isWatching) return
    isWatching = true
    let timer: ReturnType<typeof setTimeout>
    const again = () => {
      clearTimeout(timer)
      void load().finally(() => {
        clearTimeout(timer)
        timer = setTimeout(again, session.connected && failures === 0 ? EVERY_MS : ALONE_EVERY_MS)
      })
    }
    again()
    onNews('inbox:changed', again)
    watch(() => session.connected, again)
  }

  async function answer(card: ApprovalCard, given: ApprovalAnswer): Promise<void> {
    if (deciding.value.has(card.id)) return
    deciding.value.add(card.id)
    const isTaken = await notices.attempt(() => api.answerApproval(card, given))
    if (isTaken) cards.value = cards.value.filter(({ id }) => id !== card.id)
    else deciding.value.delete(card.id)
    await load()
    deciding.value.delete(card.id)
  }

  return { cards, isAway, deciding, arrangement, isShown, clockOffset, watchCards, answer }
})
