import { defineStore } from 'pinia'
import { computed, ref, toRaw, watch } from 'vue'
import { type ChangedFile, choiceOf } from '../../../contract/effects/change-set.ts'
import { recall, remember } from '../../remembered.ts'
import { forkedCallIds } from '../../text/effects/forked-call.ts'
import { countingChoices, type MadeChoices } from '../../text/effects/made-choices.ts'
import { INPUT } from '../call-views.ts'
import { useKeptInputs } from '../drafts/kept-inputs.ts'
import { useNotices } from '../notices.ts'
import { useSession } from '../session.ts'

/** Longer drafts are not stored: they would leave no room for others. */
const MAX_KEPT_CHARS = 500_000

interface Draft {
  /** The changes that it was made for. */
  hash: string
  rejected: string[]
  made: MadeChoices
  comment: string
}

/** The open review, and what the person has decided in it so far. The draft survives Escape, a reload and a change of the session. */
export const useReview = defineStore('review', () => {
  const session = useSession()
  const notices = useNotices()
  const keptInputs = useKeptInputs()
  const isShown = ref(false)
  const isSending = ref(false)
  const rejected = ref(new Set<string>())
  const made = ref<MadeChoices>({})
  const comment = ref('')
  /** The changes that were shown last; another hash means that the fork went on. */
  const seenHash = ref('')

  const open = computed(() => {
    void session.version
    return toRaw(session.transcript).review
  })
  const hasGrown = computed(
    () => open.value !== null && seenHash.value !== '' && seenHash.value !== open.value.changes.hash
  )
  const callIds = computed(() => {
    void session.version
    return forkedCallIds(toRaw(session.transcript))
  })

  /** The review that was sent from here. */
  let sentKey = ''
  const keyOf = (reviewId: string) => `${INPUT}review:${reviewId}:${session.sessionId}`
  watch(
    () => (open.value ? keyOf(open.value.reviewId) : ''),
    (key, before) => {
      if (before) keepComment(before)
      const kept = key === '' ? null : recall(key, 'tab')
      const draft: Draft | null = kept === null ? null : JSON.parse(kept)
      rejected.value = new Set(draft?.rejected)
      made.value = draft?.made ?? {}
      comment.value = draft?.comment ?? ''
      seenHash.value = draft?.hash ?? ''
      if (key === '') isShown.value = false
    },
    { immediate: true, flush: 'sync' }
  )
  /** The review was decided elsewhere, or taken back. The comment is kept for the person, unless they have sent it. */
  function keepComment(key: string): void {
    const isHere = key.endsWith(`:${session.sessionId}`)
    if (isHere && !isSending.value && key !== sentKey)
      keptInputs.keep('Your comment was not sent: the review is over.', comment.value, 'dialog')
  }
  watch([rejected, made, comment, seenHash], () => {
    if (!open.value) return
    const draft: Draft = {
      ...{ hash: seenHash.value, rejected: [...rejected.value] },
      ...{ made: made.value, comment: comment.value }
    }
    const kept = JSON.stringify(draft)
    remember(keyOf(open.value.reviewId), kept.length > MAX_KEPT_CHARS ? null : kept, 'tab')
  })

  function show(): void {
    if (open.value) isShown.value = true
  }
  /** Call this when the person has seen that the changes are not the same as before. */
  function see(): void {
    seenHash.value = open.value?.changes.hash ?? ''
  }
  function toggle(path: string): void {
    const next = new Set(rejected.value)
    if (!next.delete(path)) next.add(path)
    rejected.value = next
  }
  function setAll(files: readonly ChangedFile[], isAccepted: boolean): void {
    const next = new Set(rejected.value)
    for (const { path } of files) {
      if (isAccepted) next.delete(path)
      else next.add(path)
    }
    rejected.value = next
  }

  async function decide(files: readonly ChangedFile[], hash: string): Promise<boolean> {
    const review = open.value
    if (!review || isSending.value) return false
    isSending.value = true
    sentKey = keyOf(review.reviewId)
    const accepted = files.filter(({ path }) => !rejected.value.has(path))
    const chosen = countingChoices(accepted, made.value)
    const some = accepted.length === 0 ? 'none' : choiceOf(files, (path) => !rejected.value.has(path))
    const text = comment.value.trim()
    const reply = await session.send('review:decide', {
      ...{ reviewId: review.reviewId, hash, accept: accepted.length === files.length ? 'all' : some },
      ...(Object.keys(chosen.choices).length > 0 && chosen),
      ...(text !== '' && { comment: text })
    })
    isSending.value = false
    if (reply.ok) {
      remember(sentKey, null, 'tab')
      return true
    }
    sentKey = ''
    if (open.value?.reviewId !== review.reviewId)
      keptInputs.keep('Your comment was not sent: the review is over.', text, 'dialog')
    if (reply.error.code === 'offline') notices.showOffline('The review was not sent: there is no connection.')
    else notices.show(reply.error.message, 'error')
    return false
  }

  return {
    ...{ open, isShown, isSending, rejected, made, comment, hasGrown, callIds },
    ...{ show, see, toggle, setAll, decide }
  }
})
