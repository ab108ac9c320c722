import { defineStore } from 'pinia'
import { ref, watch } from 'vue'
import { newId } from '../new-id.ts'
import { forgetAll, recall, remember } from '../remembered.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** Stop takes the place of Send. A click on it this soon after sending is a mistake. */
const STOP_AFTER_MS = 1000

/** A message that was sent but not confirmed. It is sent again under the same id, so the server counts it once. */
interface Sent {
  id: string
  text: string
}

/** The person's draft. A message sent during a turn is queued until the turn ends; until then it can be edited or dropped. */
export const useComposer = defineStore('composer', () => {
  const session = useSession()
  const notices = useNotices()
  const draft = ref('')
  const queued = ref<string | null>(null)
  const sending = ref(false)
  /** Whether the dialog is open that asks about cancelling waiting calls. */
  const isStopAsked = ref(false)
  /** A message was sent a moment ago, so Stop does nothing yet. */
  const isJustSent = ref(false)
  let justSent: ReturnType<typeof setTimeout>
  /** Ids of messages sent from this tab; all others come from other tabs. */
  const ownIds = new Set<string>()
  const isFree = () => session.connected && session.transcript.turnId === null

  // Synchronous, so that a draft is never stored under the id of another session.
  watch(draft, (text) => remember(`draft:${session.sessionId}`, text), { flush: 'sync' })
  watch(queued, (text) => remember(`queued:${session.sessionId}`, text), { flush: 'sync' })
  watch(
    () => session.sessionId,
    (id, before) => {
      const isDeleted = before !== undefined && before === session.deletedId
      const taken = isDeleted ? joinLines(queued.value, draft.value) : null
      if (isDeleted) forgetDrafts(before)
      // Only once, because its id may be used again for another session.
      session.deletedId = ''
      // A queued message becomes a draft after a reload: if it were sent automatically, two tabs would send it twice.
      const written = joinLines(taken, recall(`queued:${id}`), recall(`draft:${id}`))
      const sent = recallSent(id)
      draft.value = sent && withoutPrefix(written, sent.text) === written ? joinLines(sent.text, written) : written
      queued.value = null
      remember(`draft:${id}`, draft.value)
      remember(`queued:${id}`, null)
      sending.value = false
    },
    { immediate: true, flush: 'sync' }
  )
  watch(
    () => session.version,
    () => {
      if (!session.connected) return
      forgetDelivered()
      if (isFree()) void sendQueued()
    },
    { immediate: true }
  )

  async function submit(): Promise<void> {
    const text = draft.value.trim()
    if (text === '') return
    draft.value = ''
    await say(text)
  }

  /** Does not change the draft. */
  async function say(text: string): Promise<void> {
    if (session.activity === 'idle' && !sending.value) await deliver(text)
    else queued.value = joinLines(queued.value, text)
  }

  async function sendQueued(): Promise<void> {
    const text = queued.value
    if (text === null || sending.value) return
    // A message that may have arrived is sent again unchanged; text added since is sent after it.
    const sent = recallSent(session.sessionId)
    const rest = sent ? withoutPrefix(text, sent.text) : text
    queued.value = rest === text ? null : rest || null
    await deliver(sent && rest !== text ? sent.text : text)
  }

  async function deliver(text: string): Promise<void> {
    const from = session.sessionId
    const after = session.transcript.seq
    const before = recallSent(from)
    const id = before?.text === text ? before.id : newId()
    rememberSent(from, { id, text })
    ownIds.add(id)
    sending.value = true
    isJustSent.value = true
    clearTimeout(justSent)
    justSent = setTimeout(() => {
      isJustSent.value = false
    }, STOP_AFTER_MS)
    const reply = await session.send('message', { text, id })
    if (reply.ok) forgetSent(from, id)
    if (session.sessionId !== from) {
      // The person switched to another session, which closed the connection: keep the text in the session where it was written.
      if (!reply.ok) remember(`draft:${from}`, joinLines(text, recall(`draft:${from}`)))
      return
    }
    sending.value = false
    if (!reply.ok) onFailure(reply.error, { id, text })
    // If no event arrived since sending, the turn that blocks it is not known yet; its end will be an event.
    if (session.transcript.seq > after && isFree()) void sendQueued()
  }

  function onFailure({ code, message }: { code: string; message: string }, { id, text }: Sent): void {
    if (code !== 'no_answer') forgetSent(session.sessionId, id)
    // Another tab started a turn, or the connection broke: queue the message.
    if (code === 'turn_in_progress' || !session.connected) {
      queued.value = joinLines(text, queued.value)
    } else {
      draft.value = joinLines(text, draft.value)
      notices.show(message, 'error')
    }
  }

  function forgetDelivered(): void {
    const sent = recallSent(session.sessionId)
    if (!sent || sending.value) return
    if (!session.transcript.entries.some((entry) => entry.kind === 'user' && entry.id === sent.id)) return
    forgetSent(session.sessionId, sent.id)
    queued.value = withoutPrefix(queued.value ?? '', sent.text) || null
    draft.value = withoutPrefix(draft.value, sent.text)
  }

  function takeBack(): void {
    if (queued.value === null) return
    draft.value = joinLines(queued.value, draft.value)
    queued.value = null
  }

  /** Stops the turn. This cancels waiting calls, so the person is asked first. */
  function askStop(): void {
    if (session.transcript.turnId === null || isJustSent.value) return
    if (session.pendingIds.length > 0) isStopAsked.value = true
    else void stop()
  }
  async function stop(): Promise<void> {
    isStopAsked.value = false
    if (session.transcript.turnId === null) return
    const reply = await session.send('turn:cancel', {})
    // It has already ended, by itself or by the first click.
    if (!reply.ok && reply.error.code !== 'no_turn') notices.show(reply.error.message, 'error')
  }
  watch(
    () => session.transcript.turnId,
    () => {
      isStopAsked.value = false
    }
  )

  /** For the up arrow: puts the last message into the draft. */
  function lastMessage(): string | null {
    const last = session.transcript.entries.findLast((entry) => entry.kind === 'user')
    return last?.kind === 'user' ? last.text : null
  }
  return {
    draft,
    queued,
    sending,
    isStopAsked,
    submit,
    say,
    takeBack,
    askStop,
    isJustSent,
    stop,
    lastMessage,
    isOwn: (id: string | undefined) => id !== undefined && ownIds.has(id)
  }
})

/** Called when a session is deleted. */
export function forgetDrafts(sessionId: string): void {
  remember(`draft:${sessionId}`, null)
  remember(`queued:${sessionId}`, null)
  remember(`sent:${sessionId}`, null)
}

/** Called when all sessions are deleted, including those that this page has not listed. */
export function forgetAllDrafts(openId: string): void {
  forgetAll(['draft:', 'queued:', 'sent:'], openId)
}

function rememberSent(sessionId: string, sent: Sent): void {
  remember(`sent:${sessionId}`, JSON.stringify(sent))
}

/** Stored in the browser, so that a reload or another tab does not send it under another id. */
function recallSent(sessionId: string): Sent | null {
  const kept = recall(`sent:${sessionId}`)
  return kept === null ? null : (JSON.parse(kept) as Sent)
}

function forgetSent(sessionId: string, id: string): void {
  if (recallSent(sessionId)?.id === id) remember(`sent:${sessionId}`, null)
}

function joinLines(...parts: (string | null)[]): string {
  return parts.filter(Boolean).join('\n')
}

/** Removes the part that was added to its front. */
function withoutPrefix(text: string, part: string): string {
  if (text === part) return ''
  return text.startsWith(`${part}\n`) ? text.slice(part.length + 1) : text
}
