import { computed, type Ref, watch } from 'vue'
import type { CallEntry } from '../../contract/transcript.ts'
import { type Answer, useApprovals } from '../stores/approvals.ts'
import { useCallViews } from '../stores/call-views.ts'
import { useSession } from '../stores/session.ts'
import { useDecision } from './use-decision.ts'

interface Options {
  call: () => CallEntry
  card: Readonly<Ref<HTMLElement | null>>
  /** The forms that keys open, besides A, which chooses to approve. */
  forms: Record<string, 'edit' | 'reject'>
  words?: { yes: string; no: string }
}

/** Common behaviour of the cards of calls in the chat: keys, arming, the focus, and the message without a connection. */
export function useCardAnswers({ call, card, forms, words }: Options) {
  const approvals = useApprovals()
  const views = useCallViews()
  const view = views.viewOf(call().callId)
  watch(
    () => [view.mode, view.edit, view.reason, view.made],
    () => views.keep(call()),
    { deep: true }
  )
  const isSent = computed(() => approvals.deciding.has(call().callId))
  const session = useSession()
  const hasKeyboard = () => card.value?.querySelector(':focus-visible') !== null
  /** Whether the person opened the form by keyboard. */
  let isFormByKey = false
  function open(mode: 'edit' | 'reject', isByKey = hasKeyboard()): void {
    const show = () => {
      isFormByKey = isByKey
      view.mode = mode
    }
    // The form shows a part of a long text only, and approves all of it.
    if (mode === 'edit') decision.ifSeen(show)
    else show()
  }
  /** The focused button disappears. For keyboard users, the card keeps the focus until the decision is confirmed; after a click, the composer gets it. */
  function answer(given: Answer, isByKey = hasKeyboard()): void {
    if (isByKey) card.value?.focus()
    else if (card.value?.contains(document.activeElement)) letType(card.value)
    void approvals.answer(call(), given)
  }
  /** For keyboard users, focus the card when the form closes. */
  function back(edit = view.edit): void {
    if (hasKeyboard()) card.value?.focus()
    view.mode = 'decide'
    view.edit = edit
  }
  const letters = Object.entries(forms).map(([letter, form]) => [letter, () => open(form, true)])
  const {
    isArmed: isSettled,
    ifArmed,
    ...decision
  } = useDecision({
    card,
    view,
    arrangement: () => approvals.arrangement,
    open: Object.fromEntries(letters),
    ...(words && { words })
  })
  /** Without a connection, a click only shows that nothing was decided. */
  function ifPossible(action: () => void, approved = true): void {
    if (session.connected) ifArmed(action)
    else approvals.sayOffline(approved)
  }
  const isArmed = computed(() => isSettled.value && session.connected)
  return { ...decision, view, isSent, isArmed, open, answer, back, ifPossible, isFormByKey: () => isFormByKey }
}

/** On a phone, focus the list instead: the keyboard would cover the next card. */
function letType(card: HTMLElement): void {
  const isPhone = matchMedia('(pointer: coarse)').matches
  const place = isPhone ? card.closest('[role="region"]') : document.querySelector('#composer')
  if (place instanceof HTMLElement) place.focus({ preventScroll: true })
}
