import { defineStore } from 'pinia'
import { ref, watch } from 'vue'
import { newId } from '../new-id.ts'
import { forgetAll, recall, remember } from '../remembered.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** Stop stands where Send was: so soon after a message nobody means to stop what it began. */
const STOP_AFTER_MS = 1000

/** On its way, or its answer was lost. Sent again under the same id, it is one message to the server. */
interface Sent {
  id: string
  text: string
}

/** What the person writes. A message written during a turn waits for its end; it is theirs to edit or drop until then. */
export const useComposer = defineStore('composer', () => {
  const session = useSession()
  const notices = useNotices()
  const draft = ref('')
  const queued = ref<string | null>(null)
  const sending = ref(false)
  /** Whether the person is being asked if the calls that wait may be cancelled. */
  const isStopAsked = ref(false)
  /** A message went off a moment ago: Stop, which stands where Send was, does nothing yet. */
  const isJustSent = ref(false)
  let justSent: ReturnType<typeof setTimeout>
  /** Ids of what was sent from here: the other messages of the session are another tab's. */
  const own = new Set<string>()
  const isFree = () => session.connected && session.transcript.turnId === null

  // All at once, not with the next frame: what is written must never be kept under the id of another session.
  watch(draft, (text) => remember(`draft:${session.sessionId}`, text), { flush: 'sync' })
  watch(queued, (text) => remember(`queued:${session.sessionId}`, text), { flush: 'sync' })
  watch(
    () => session.sessionId,
    (id, before) => {
      const isDeleted = before !== undefined && before === session.deletedId
      const taken = isDeleted ? joined(queued.value, draft.value) : null
      if (isDeleted) forgetWritten(before)
      // Once: its id may be opened again, as another session.
      session.deletedId = ''
      // What waited when the page was left is the person's again: sent by itself, two tabs would send it twice.
      const written = joined(taken, recall(`queued:${id}`), recall(`draft:${id}`))
      const sent = recallSent(id)
      draft.value = sent && without(written, sent.text) === written ? joined(sent.text, written) : written
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
      dropArrived()
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

  /** Leaves the draft alone. */
  async function say(text: string): Promise<void> {
    if (session.activity === 'idle' && !sending.value) await deliver(text)
    else queued.value = joined(queued.value, text)
  }

  async function sendQueued(): Promise<void> {
    const text = queued.value
    if (text === null || sending.value) return
    // What may have arrived goes again as it was; what was added to it since comes after it.
    const sent = recallSent(session.sessionId)
    const rest = sent ? without(text, sent.text) : text
    queued.value = rest === text ? null : rest || null
    await deliver(sent && rest !== text ? sent.text : text)
  }

  async function deliver(text: string): Promise<void> {
    const from = session.sessionId
    const after = session.transcript.seq
    const before = recallSent(from)
    const id = before?.text === text ? before.id : newId()
    rememberSent(from, { id, text })
    own.add(id)
    sending.value = true
    isJustSent.value = true
    clearTimeout(justSent)
    justSent = setTimeout(() => {
      isJustSent.value = false
    }, STOP_AFTER_MS)
    const reply = await session.send('message', { text, id })
    if (reply.ok) forgetSent(from, id)
    if (session.sessionId !== from) {
      // The person went to another session meanwhile, which ended the connection: they find the text where they wrote it.
      if (!reply.ok) remember(`draft:${from}`, joined(text, recall(`draft:${from}`)))
      return
    }
    sending.value = false
    if (!reply.ok) onFailure(reply.error, { id, text })
    // Without news since it was sent, the turn that is in its way is not known yet: its end will be news too.
    if (session.transcript.seq > after && isFree()) void sendQueued()
  }

  function onFailure({ code, message }: { code: string; message: string }, { id, text }: Sent): void {
    if (code !== 'no_answer') forgetSent(session.sessionId, id)
    // A turn that began in another tab meanwhile, or a broken connection: the message waits like any other.
    if (code === 'turn_in_progress' || !session.connected) {
      queued.value = joined(text, queued.value)
    } else {
      draft.value = joined(text, draft.value)
      notices.show(message, 'error')
    }
  }

  function dropArrived(): void {
    const sent = recallSent(session.sessionId)
    if (!sent || sending.value) return
    if (!session.transcript.entries.some((entry) => entry.kind === 'user' && entry.id === sent.id)) return
    forgetSent(session.sessionId, sent.id)
    queued.value = without(queued.value ?? '', sent.text) || null
    draft.value = without(draft.value, sent.text)
  }

  function takeBack(): void {
    if (queued.value === null) return
    draft.value = joined(queued.value, draft.value)
    queued.value = null
  }

  /** Stops the turn. Calls that wait go with it, so the person is asked about those first. */
  function askStop(): void {
    if (session.transcript.turnId === null || isJustSent.value) return
    if (session.pendingIds.length > 0) isStopAsked.value = true
    else void stop()
  }
  async function stop(): Promise<void> {
    isStopAsked.value = false
    if (session.transcript.turnId === null) return
    const reply = await session.send('turn:cancel', {})
    // It has ended by itself meanwhile, or by the first click of two.
    if (!reply.ok && reply.error.code !== 'no_turn') notices.show(reply.error.message, 'error')
  }
  watch(
    () => session.transcript.turnId,
    () => {
      isStopAsked.value = false
    }
  )

  /** For the up-arrow: the last message again, to be sent anew. */
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
    isOwn: (id: string | undefined) => id !== undefined && own.has(id)
  }
})

/** For a session that is deleted. */
export function forgetWritten(sessionId: string): void {
  remember(`draft:${sessionId}`, null)
  remember(`queued:${sessionId}`, null)
  remember(`sent:${sessionId}`, null)
}

/** When all sessions are deleted, those too that this page has not listed. */
export function forgetAllWritten(openId: string): void {
  forgetAll(['draft:', 'queued:', 'sent:'], openId)
}

function rememberSent(sessionId: string, sent: Sent): void {
  remember(`sent:${sessionId}`, JSON.stringify(sent))
}

/** Kept in the browser: a reload, or another tab, must not send it as another one. */
function recallSent(sessionId: string): Sent | null {
  const kept = recall(`sent:${sessionId}`)
  return kept === null ? null : (JSON.parse(kept) as Sent)
}

function forgetSent(sessionId: string, id: string): void {
  if (recallSent(sessionId)?.id === id) remember(`sent:${sessionId}`, null)
}

function joined(...parts: (string | null)[]): string {
  return parts.filter(Boolean).join('\n')
}

/** Without the part that was joined to its front. */
function without(text: string, part: string): string {
  if (text === part) return ''
  return text.startsWith(`${part}\n`) ? text.slice(part.length + 1) : text
}
