import { type Ref, watch } from 'vue'
import type { WaitingQuestion } from '../../../contract/rest.ts'
import { useSession } from '../../stores/session.ts'
import { typing } from '../page-typing.ts'
import type { useVirtualRows } from './use-virtual-rows.ts'

/** Leads to the first card that waits for a decision or an answer: by key or button, after a decision, and when it appears at the end. */
export function useWaitingCards(
  scroller: Readonly<Ref<HTMLElement | null>>,
  rows: ReturnType<typeof useVirtualRows>,
  rowOf: (callId?: string) => number | undefined,
  loadQuestionCard: () => Promise<unknown>
) {
  const session = useSession()
  const first = () => session.pendingIds[0]
  const selectorOf = (callId: string) => `[data-call="${CSS.escape(callId)}"]`

  /** Scrolls to the first waiting card and focuses it. */
  async function review(): Promise<void> {
    const callId = first() ?? ''
    await rows.toRow(rowOf(callId) ?? '')
    scroller.value?.querySelector<HTMLElement>(selectorOf(callId))?.focus()
  }
  async function toQuestion(question: WaitingQuestion): Promise<void> {
    const row = rowOf(question.callId)
    if (row === undefined) return
    // The card's code is loaded with the first question.
    await Promise.all([rows.toRow(row), loadQuestionCard()])
    await new Promise(requestAnimationFrame)
    const card = `[data-row="${row}"] [data-question="${CSS.escape(question.id)}"]`
    scroller.value?.querySelector<HTMLElement>(card)?.focus()
  }
  let last = ''
  /** Leads to the first waiting card, then to each question in turn. The person goes there on purpose, so their next key is meant for it. */
  function showNext(): void {
    const stops = [
      ...(first() === undefined ? [] : [{ key: `call ${first()}`, go: review }]),
      ...session.questions.map((each) => ({ key: `question ${each.callId} ${each.id}`, go: () => toQuestion(each) }))
    ]
    const next = stops[(stops.findIndex(({ key }) => key === last) + 1) % stops.length]
    if (!next) return
    last = next.key
    typing.clear()
    void next.go()
  }
  function isInSight(callId: string): boolean {
    const card = scroller.value?.querySelector(selectorOf(callId))?.getBoundingClientRect()
    const view = scroller.value?.getBoundingClientRect()
    return card !== undefined && view !== undefined && card.bottom > view.top && card.top < view.bottom
  }

  // After a decision by keyboard, focus the next card; otherwise the focus would be lost with the old one.
  watch(
    first,
    (next, before) => {
      const focused = document.activeElement
      if (!before || next === before || focused?.closest(selectorOf(before)) === null) return
      // The text that is typed there is kept in a field of its own, which takes the focus.
      if (focused?.matches('input, textarea')) return
      if (next) void review()
      else document.querySelector<HTMLElement>('#composer')?.focus()
    },
    { flush: 'pre' }
  )
  // Scroll to the first card, unless the person is reading further up.
  let isFollowing = false
  // Check while the card is still drawn: if the person has scrolled away from it, don't scroll when it is decided.
  watch(
    first,
    (_, before) => {
      if (before !== undefined && !isInSight(before)) isFollowing = false
    },
    { flush: 'pre' }
  )
  watch(
    first,
    async (next) => {
      if (!next && isFollowing) rows.toEnd()
      isFollowing = next !== undefined && (isFollowing || rows.isAtEnd.value)
      if (isFollowing) await rows.toRow(rowOf(next) ?? '')
    },
    { immediate: true, flush: 'post' }
  )
  return { showNext }
}
