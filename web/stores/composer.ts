import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { Attachment } from '../../contract/attachments.ts'
import { EDITED } from '../file-drafts.ts'
import { newId } from '../new-id.ts'
import { forgetAll, recall, remember } from '../remembered.ts'
import { INPUT } from './call-views.ts'
import { FILES, useAttachments } from './drafts/attachments.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** The key of a queue begins with this and ends with the id of the session. */
export const QUEUED = 'queued:'
/** Stop takes the place of Send. A click on it this soon after sending is a mistake. */
const STOP_AFTER_MS = 1000

/** A message keeps its id when it is sent again, so the server counts it once. */
interface Message {
  id: string
  text: string
  files?: Attachment[]
}

/** The person's draft. Messages sent during a turn are queued until it ends, then sent one by one; until then they can be taken back. */
export const useComposer = defineStore('composer', () => {
  const session = useSession()
  const notices = useNotices()
  const attachments = useAttachments()
  const draft = ref('')
  const queued = ref<Message[]>([])
  const sending = ref(false)
  /** Whether the dialog that asks about cancelling waiting calls is open. */
  const isStopAsked = ref(false)
  /** A message was sent a moment ago, so Stop does nothing yet. */
  const isJustSent = ref(false)
  let justSent: ReturnType<typeof setTimeout>
  /** Ids of messages sent from this tab; all others come from other tabs. */
  const ownIds = new Set<string>()
  const isFree = () => session.connected && session.transcript.turnId === null

  // Synchronous, so that a draft is never stored under the id of another session.
  watch(draft, (text) => rememberDraft(session.sessionId, text), { flush: 'sync' })
  watch(queued, (messages) => rememberQueue(session.sessionId, messages), { flush: 'sync' })
  watch(
    () => session.sessionId,
    (id, before) => {
      const isDeleted = before !== undefined && before === session.deletedId
      const taken = isDeleted ? joinLines(...textsOf(queued.value), draft.value) : null
      if (isDeleted) forgetDrafts(before)
      // Only once, because its id may be used again for another session.
      session.deletedId = ''
      const own = recallQueue(id)
      // The queue of a closed tab becomes a draft: if it were sent automatically, two tabs would send it twice.
      const elsewhere = own.length > 0 ? null : recall(`${QUEUED}${id}`)
      attachments.giveBack(id, recallQueuedFiles(id, own))
      const written = joinLines(taken, elsewhere, recall(`draft:${id}`, 'tab') ?? recall(`draft:${id}`))
      const sent = recallSent(id)
      const isSentFirst = sent !== null && own.length > 0
      queued.value = isSentFirst ? [sent, ...own.filter((message) => message.id !== sent.id)] : own
      if (sent && !isSentFirst) attachments.giveBack(id, sent.files)
      draft.value =
        sent && !isSentFirst && withoutPrefix(written, sent.text) === written ? joinLines(sent.text, written) : written
      rememberDraft(id, draft.value)
      rememberQueue(id, queued.value)
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

  const isEmpty = computed(() => draft.value.trim() === '' && attachments.files.length === 0)

  async function submit(): Promise<void> {
    if (isEmpty.value || attachments.isUploading) return
    const text = draft.value.trim()
    const files = attachments.take()
    draft.value = ''
    await say(text, files)
  }

  /** Does not change the draft. */
  async function say(text: string, files: Attachment[] = []): Promise<void> {
    const sent = recallSent(session.sessionId)
    const isSame = sent?.text === text && JSON.stringify(sent.files ?? []) === JSON.stringify(files)
    const message = isSame ? sent : { id: newId(), text, ...(files.length > 0 && { files }) }
    if (session.activity === 'idle' && !sending.value) await deliver(message)
    else queued.value = [...queued.value, message]
  }

  async function sendQueued(): Promise<void> {
    const [next, ...rest] = queued.value
    if (!next || sending.value) return
    queued.value = rest
    await deliver(next)
  }

  async function deliver(message: Message): Promise<void> {
    const { id, text, files } = message
    const from = session.sessionId
    const after = session.transcript.seq
    remember(`sent:${from}`, JSON.stringify(message))
    ownIds.add(id)
    sending.value = true
    isJustSent.value = true
    clearTimeout(justSent)
    justSent = setTimeout(() => {
      isJustSent.value = false
    }, STOP_AFTER_MS)
    const given = files?.map(({ id: file, name, view }) => ({ id: file, name, ...(view && { view: view.id }) }))
    const reply = await session.send('message', { text, id, ...(given && { attachments: given }) })
    if (reply.ok) forgetSent(from, id)
    if (session.sessionId !== from) {
      // The person switched to another session, which closed the connection: keep the text in the session where it was written.
      if (!reply.ok) {
        rememberDraft(from, joinLines(text, recall(`draft:${from}`)))
        attachments.giveBack(from, files)
      }
      return
    }
    sending.value = false
    if (!reply.ok) onFailure(reply.error, message)
    // If no event arrived since sending, the turn that blocks it is not known yet; its end will be an event.
    if (session.transcript.seq > after && isFree()) void sendQueued()
  }

  function onFailure(error: { code: string; message: string }, message: Message): void {
    if (error.code !== 'no_answer') forgetSent(session.sessionId, message.id)
    // Another tab started a turn, or the connection broke: queue the message.
    if (error.code === 'turn_in_progress' || !session.connected) {
      queued.value = [message, ...queued.value]
    } else {
      draft.value = joinLines(message.text, draft.value)
      // Otherwise it could never be sent.
      if (error.code !== 'attachment_unknown') attachments.giveBack(session.sessionId, message.files)
      notices.show(error.message, 'error')
    }
  }

  function forgetDelivered(): void {
    const sent = recallSent(session.sessionId)
    if (sending.value || (!sent && queued.value.length === 0)) return
    const arrived = new Set(session.transcript.entries.flatMap((entry) => (entry.kind === 'user' ? [entry.id] : [])))
    if (queued.value.some(({ id }) => arrived.has(id))) queued.value = queued.value.filter(({ id }) => !arrived.has(id))
    if (!sent || !arrived.has(sent.id)) return
    forgetSent(session.sessionId, sent.id)
    draft.value = withoutPrefix(draft.value, sent.text)
    for (const { id } of sent.files ?? []) attachments.drop(id)
  }

  function takeBack(messages = queued.value): void {
    draft.value = joinLines(...textsOf(messages), draft.value)
    for (const { files } of messages) attachments.giveBack(session.sessionId, files)
    queued.value = queued.value.filter((message) => !messages.includes(message))
  }

  function removeQueued(message: Message): void {
    queued.value = queued.value.filter(({ id }) => id !== message.id)
    // It becomes a draft again: its turn in the queue may be over.
    const undo = () => takeBack([message])
    notices.show('Removed the queued message.', 'info', { undo })
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
    // Someone who stops the model does not want it to go on with the next message.
    takeBack()
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

  const stopNote = computed(() => {
    if (queued.value.length === 0) return ''
    return `Your queued ${queued.value.length === 1 ? 'message becomes a draft' : 'messages become drafts'} again.`
  })

  /** For the up arrow: puts the last message into the draft. */
  function lastMessage(): string | null {
    const last = session.transcript.entries.findLast((entry) => entry.kind === 'user')
    return last?.kind === 'user' ? last.text : null
  }
  return {
    draft,
    isEmpty,
    queued,
    sending,
    isStopAsked,
    submit,
    say,
    takeBack,
    removeQueued,
    askStop,
    isJustSent,
    stop,
    stopNote,
    lastMessage,
    isOwn: (id: string | undefined) => id !== undefined && ownIds.has(id)
  }
})

const KEPT = ['draft:', QUEUED, 'queued-files:', 'sent:', FILES, INPUT, EDITED]

/** Called when a session is deleted. Returns a way to put them back. */
export function forgetDrafts(sessionId: string): () => void {
  return forgetAll(KEPT, (key) => key.endsWith(sessionId))
}

/** Called when all sessions are deleted, including those that this page has not listed. */
export function forgetAllDrafts(openId: string): void {
  forgetAll(KEPT, (key) => !key.endsWith(openId))
}

/** This tab's own draft comes first. A new tab begins with the last draft of any tab. */
function rememberDraft(sessionId: string, text: string): void {
  remember(`draft:${sessionId}`, text, 'tab')
  remember(`draft:${sessionId}`, text)
}

function rememberQueue(sessionId: string, messages: Message[]): void {
  remember(`${QUEUED}${sessionId}`, messages.length === 0 ? null : JSON.stringify(messages), 'tab')
  remember(`${QUEUED}${sessionId}`, joinLines(...textsOf(messages)))
  const files = messages.flatMap((message) => message.files ?? [])
  remember(`queued-files:${sessionId}`, files.length === 0 ? null : JSON.stringify(files))
}

/** The files of messages that were queued in a tab that is closed now. */
function recallQueuedFiles(sessionId: string, own: Message[]): Attachment[] {
  return own.length > 0 ? [] : (JSON.parse(recall(`queued-files:${sessionId}`) ?? '[]') as Attachment[])
}

function recallQueue(sessionId: string): Message[] {
  return JSON.parse(recall(`${QUEUED}${sessionId}`, 'tab') ?? '[]') as Message[]
}

const textsOf = (messages: readonly Message[]) => messages.map(({ text }) => text)

/** Stored in the browser, so that a reload or another tab does not send it under another id. */
function recallSent(sessionId: string): Message | null {
  const kept = recall(`sent:${sessionId}`)
  return kept === null ? null : (JSON.parse(kept) as Message)
}

function forgetSent(sessionId: string, id: string): void {
  if (recallSent(sessionId)?.id === id) remember(`sent:${sessionId}`, null)
}

function joinLines(...parts: (string | null)[]): string {
  return parts.filter(Boolean).join('\n')
}

/** Removes the text that was added before it. */
function withoutPrefix(text: string, part: string): string {
  if (text === part) return ''
  return text.startsWith(`${part}\n`) ? text.slice(part.length + 1) : text
}
