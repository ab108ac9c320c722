import { nextTick, type Ref, watch } from 'vue'
import { type Target, usePlace } from '../../stores/place.ts'
import { useSession } from '../../stores/session.ts'
import { typing } from '../page-typing.ts'
import type { useVirtualRows } from './use-virtual-rows.ts'

const OLDER_FROM_PX = 400
const MARKED_MS = 2500
const CARD_FRAMES = 30

/** Loads older entries when the person scrolls up, or opens a message from the search or a call from a list. */
export function useOlderRows(scroller: Readonly<Ref<HTMLElement | null>>, rows: ReturnType<typeof useVirtualRows>) {
  const session = useSession()
  const place = usePlace()

  /** Keeps the scroll position while rows are added above. */
  async function showOlder(): Promise<void> {
    const view = scroller.value
    const fromEnd = view ? view.scrollHeight - view.scrollTop : 0
    await session.loadOlder()
    await nextTick()
    if (!view || rows.isAtEnd.value) return
    view.scrollTop = view.scrollHeight - fromEnd
    rows.onScroll()
  }
  function onScroll(): void {
    rows.onScroll()
    if (!rows.isAtEnd.value && (scroller.value?.scrollTop ?? 0) < OLDER_FROM_PX) void showOlder()
  }

  async function show({ sessionId, callId, seq = rowOf(callId) }: Target): Promise<void> {
    if (seq === undefined) return
    while (session.olderBefore !== null && seq < session.olderBefore) {
      const before = session.olderBefore
      await session.loadOlder()
      if (session.sessionId !== sessionId || session.olderBefore === before) return
    }
    await nextTick()
    await rows.toRow(seq)
    const row = scroller.value?.querySelector<HTMLElement>(`[data-row="${seq}"]`)
    if (!row) return
    // The person went there on purpose, so their next key is meant for it.
    typing.clear()
    row.animate([{ backgroundColor: 'var(--accent-soft)' }, { backgroundColor: 'transparent' }], MARKED_MS)
    if (callId === undefined) {
      row.tabIndex = -1
      row.focus({ preventScroll: true })
      return
    }
    const card = `[data-row="${seq}"] :is([data-call="${CSS.escape(callId)}"], [data-question])`
    const found = await whenDrawn(() => scroller.value?.querySelector<HTMLElement>(card))
    found?.focus({ preventScroll: true })
  }
  function rowOf(callId = ''): number | undefined {
    const shown = session.transcript.calls[callId]?.program?.callId ?? callId
    return session.transcript.entries.find((entry) => entry.kind === 'call' && entry.callId === shown)?.seq
  }
  watch(
    () => (session.isKnown && place.target?.sessionId === session.sessionId ? place.target : null),
    (target) => {
      if (!target) return
      place.target = null
      void show(target)
    },
    { immediate: true, flush: 'post' }
  )
  return { showOlder, onScroll }
}

/** The code of a card is loaded when it is first needed, so it may be drawn after its row. */
async function whenDrawn<T>(find: () => T | null | undefined): Promise<T | undefined> {
  for (let frame = 0; frame < CARD_FRAMES; frame++) {
    const found = find()
    if (found) return found
    await new Promise(requestAnimationFrame)
  }
  return undefined
}
