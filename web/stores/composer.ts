import { defineStore } from 'pinia'
import { ref, watch } from 'vue'
import { recall, remember } from '../remembered.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

interface Doubt {
  text: string
  /** The last event that was known when it was sent. */
  after: number
}

/** What the person writes. A message written during a turn waits for its end; it is theirs to edit or drop until then. */
export const useComposer = defineStore('composer', () => {
  const session = useSession()
  const notices = useNotices()
  const draft = ref('')
  const queued = ref<string | null>(null)
  const sending = ref(false)
  /** What was on its way when its session's connection ended: whether it arrived, the next snapshot shows. */
  const doubts = new Map<string, Doubt>()
  const isFree = () => session.connected && session.transcript.turnId === null

  // All at once, not with the next frame: what is written must never be kept under the id of another session.
  watch(draft, (text) => remember(`draft:${session.sessionId}`, text), { flush: 'sync' })
  watch(queued, (text) => remember(`queued:${session.sessionId}`, text), { flush: 'sync' })
  watch(
    () => session.sessionId,
    (id) => {
      // What waited when the page was left is the person's again: sent by itself, two tabs would send it twice.
      draft.value = joined(recall(`queued:${id}`), recall(`draft:${id}`))
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
    }
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
    queued.value = null
    await deliver(text)
  }

  async function deliver(text: string): Promise<void> {
    const from = session.sessionId
    const after = session.transcript.seq
    sending.value = true
    const reply = await session.send('message', { text })
    if (session.sessionId !== from) {
      if (!reply.ok) leaveBehind(from, { text, after })
      return
    }
    sending.value = false
    if (reply.ok) doubts.delete(from)
    else onFailure(reply.error, { text, after })
    // Without news since it was sent, the turn that is in its way is not known yet: its end will be news too.
    if (session.transcript.seq > after && isFree()) void sendQueued()
  }

  function onFailure({ code, message }: { code: string; message: string }, sent: Doubt): void {
    if (code === 'no_answer') doubts.set(session.sessionId, sent)
    // A turn that began in another tab meanwhile, or a broken connection: the message waits like any other.
    if (code === 'turn_in_progress' || !session.connected) {
      queued.value = joined(sent.text, queued.value)
    } else {
      draft.value = joined(sent.text, draft.value)
      notices.show(message, 'error')
    }
  }

  /** The person went to another session meanwhile, which ended the connection: they find the text where they wrote it. */
  function leaveBehind(sessionId: string, doubt: Doubt): void {
    doubts.set(sessionId, doubt)
    remember(`draft:${sessionId}`, joined(doubt.text, recall(`draft:${sessionId}`)))
  }

  function dropArrived(): void {
    const doubt = doubts.get(session.sessionId)
    if (!doubt) return
    const { text, after } = doubt
    const { entries } = session.transcript
    if (!entries.some((entry) => entry.kind === 'user' && entry.seq > after && entry.text === text)) return
    doubts.delete(session.sessionId)
    queued.value = without(queued.value ?? '', text) || null
    draft.value = without(draft.value, text)
  }

  function takeBack(): void {
    if (queued.value === null) return
    draft.value = joined(queued.value, draft.value)
    queued.value = null
  }

  async function stop(): Promise<void> {
    if (session.transcript.turnId === null) return
    const reply = await session.send('turn:cancel', {})
    if (!reply.ok) notices.show(reply.error.message, 'error')
  }

  /** For the up-arrow: the last message again, to be sent anew. */
  function lastMessage(): string | null {
    const last = session.transcript.entries.findLast((entry) => entry.kind === 'user')
    return last?.kind === 'user' ? last.text : null
  }
  return { draft, queued, submit, say, takeBack, stop, lastMessage }
})

/** For a session that is deleted. */
export function forgetWritten(sessionId: string): void {
  remember(`draft:${sessionId}`, null)
  remember(`queued:${sessionId}`, null)
}

function joined(...parts: (string | null)[]): string {
  return parts.filter(Boolean).join('\n')
}

/** Without the part that was joined to its front. */
function without(text: string, part: string): string {
  if (text === part) return ''
  return text.startsWith(`${part}\n`) ? text.slice(part.length + 1) : text
}
