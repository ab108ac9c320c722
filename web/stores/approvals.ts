import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { CallEntry } from '../../contract/transcript.ts'
import { useCallViews } from './call-views.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

export interface Answer {
  approved: boolean
  args?: Record<string, unknown>
  reason?: string
  remember?: boolean
}

/** Answers on their way to the server. The card folds when the server says so, not when the button was pressed. */
export const useApprovals = defineStore('approvals', () => {
  const session = useSession()
  const notices = useNotices()
  const views = useCallViews()
  const deciding = ref(new Set<string>())
  /** The call whose timeline is on screen. */
  const timelineOf = ref<string | null>(null)

  /** Counts what changed inside a card that waits: its buttons may have moved, and what is decided on has. */
  const redrawn = ref(0)
  /** Changes with all that moves the waiting cards about. */
  const arrangement = computed(() =>
    [
      ...session.pendingIds.map((id) => `${id} ${views.viewOf(id).mode} ${deciding.value.has(id)}`),
      redrawn.value
    ].join()
  )
  /** What “all” means: neither what is being edited or rejected, nor a tool that changed since it was last accepted. */
  const plain = computed(() =>
    session.pending.filter(
      ({ callId, definitionChange }) =>
        !definitionChange && views.viewOf(callId).mode === 'decide' && !deciding.value.has(callId)
    )
  )

  watch(
    () => session.sessionId,
    () => {
      deciding.value.clear()
      timelineOf.value = null
    },
    { flush: 'sync' }
  )

  async function answer(call: CallEntry, { approved, args, reason, remember }: Answer): Promise<void> {
    if (deciding.value.has(call.callId)) return
    deciding.value.add(call.callId)
    const reply = await session.send('tool:approval', {
      ...{ callId: call.callId, approved, hash: call.hash },
      ...(args && { args }),
      ...(reason && { reason }),
      ...(remember && { remember })
    })
    if (reply.ok) return
    deciding.value.delete(call.callId)
    notices.show(reply.error.message, 'error')
  }

  async function approveAll(): Promise<void> {
    await Promise.all(plain.value.map((call) => answer(call, { approved: true })))
  }

  return { deciding, timelineOf, redrawn, arrangement, plain, answer, approveAll }
})
