import { defineStore } from 'pinia'
import { ref, watch } from 'vue'
import { recall, remember } from '../remembered.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** What the person writes. A message written during a turn waits for its end; it is theirs to edit or drop until then. */
export const useComposer = defineStore('composer', () => {
  const session = useSession()
  const notices = useNotices()
  const draft = ref('')
  const queued = ref<string | null>(null)
  const sending = ref(false)

  watch(
    () => session.sessionId,
    (id) => {
      // What waited when the page was left is the person's again: sent by itself, two tabs would send it twice.
      draft.value = [recall(`queued:${id}`), recall(`draft:${id}`)].filter(Boolean).join('\n')
      queued.value = null
    },
    { immediate: true }
  )
  watch(draft, (text) => remember(`draft:${session.sessionId}`, text))
  watch(queued, (text) => remember(`queued:${session.sessionId}`, text))
  watch(
    () => session.connected && session.transcript.turnId === null,
    (free) => {
      if (free) void sendQueued()
    }
  )

  async function submit(): Promise<void> {
    const text = draft.value.trim()
    if (text === '' || sending.value) return
    draft.value = ''
    if (session.activity === 'idle') await deliver(text)
    else queued.value = queued.value === null ? text : `${queued.value}\n${text}`
  }

  async function sendQueued(): Promise<void> {
    const text = queued.value
    if (text === null || sending.value) return
    queued.value = null
    await deliver(text)
  }

  async function deliver(text: string): Promise<void> {
    sending.value = true
    const reply = await session.send('message', { text })
    sending.value = false
    if (reply.ok) return
    // A turn that began in another tab meanwhile: the message waits like any other.
    if (['turn_in_progress', 'offline'].includes(reply.error.code)) queued.value = text
    else {
      draft.value = draft.value === '' ? text : `${text}\n${draft.value}`
      notices.show(reply.error.message, 'error')
    }
  }

  function takeBack(): void {
    if (queued.value === null) return
    draft.value = draft.value === '' ? queued.value : `${queued.value}\n${draft.value}`
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
  return { draft, queued, sending, submit, takeBack, stop, lastMessage }
})
