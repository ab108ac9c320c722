import { defineStore } from 'pinia'
import { computed, ref, shallowRef, toRaw, watch } from 'vue'
import type { ConflictChoices, SeenConflicts } from '../../contract/effects/change-set.ts'
import { revealPlainly } from '../../contract/hidden-characters.ts'
import { otherReads } from '../../contract/programs.ts'
import { type CallEntry, callOf, coveredCalls } from '../../contract/transcript.ts'
import { editedText, useCallViews } from './call-views.ts'
import { useKeptInputs } from './drafts/kept-inputs.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

export interface Answer {
  approved: boolean
  args?: Record<string, unknown>
  reason?: string
  remember?: boolean
  /** Only for a read of a program: approve its other reads too. */
  reads?: boolean
  /** Only to keep a preview with conflicts. */
  choices?: ConflictChoices
  /** The conflicts that the person saw when they chose. */
  seenConflicts?: SeenConflicts
}

export interface Listing {
  calls: readonly CallEntry[]
  always?: CallEntry
  /** The read of a program whose approval also covers the other reads of the program. */
  reads?: CallEntry
  /** The answer to that call. */
  given?: Answer
}

/** The server takes commands of up to 1 MB, and closes the connection of a client that sends more. */
const MAX_EDIT_BYTES = 1_000_000
const EDIT_TOO_LONG =
  'These arguments are too long to be edited here. Approve them as they are, or reject the call and say what to change.'

/** The hash that a decision is bound to: of the call, or of its effects in a fork. */
const shownHash = ({ preview, hash }: CallEntry) => preview?.hash ?? hash

/** Decisions on their way to the server. The card closes when the server confirms, not when the button is pressed. */
export const useApprovals = defineStore('approvals', () => {
  const session = useSession()
  const notices = useNotices()
  const views = useCallViews()
  const kept = useKeptInputs()
  const deciding = ref(new Set<string>())
  /** The hashes of the cards that were decided in this tab, by call. */
  const answered = new Map<string, string>()
  /** The call whose timeline is on screen. */
  const timelineOf = ref<string | null>(null)

  /** Counts changes inside waiting cards, after which buttons may have moved and the content is different. */
  const redrawn = ref(0)
  /** Changes whenever waiting cards may move on the screen. */
  const arrangement = computed(() =>
    [
      ...session.pendingIds.map((id) => `${id} ${views.viewOf(id).mode} ${deciding.value.has(id)}`),
      redrawn.value
    ].join()
  )
  /** The calls that “Approve all” includes: not those being edited or rejected, nor changed tools, calls that are asked about again or may have run before, or previews. */
  const bulkApprovable = computed(() =>
    session.pending.filter(
      ({ callId, definitionChange, again, preview, program }) =>
        !definitionChange &&
        !again &&
        !preview &&
        !program?.warning &&
        views.viewOf(callId).mode === 'decide' &&
        !deciding.value.has(callId)
    )
  )

  /** The purpose of the open list: to approve the calls that waited then, or to always allow a tool. */
  const listing = shallowRef<Listing | null>(null)
  /** The other waiting calls that “Always allow” on this one approves too. */
  const coveredBy = (call: CallEntry): CallEntry[] => {
    void session.version
    return coveredCalls(toRaw(session.transcript), call)
  }
  const isWaiting = ({ callId }: CallEntry) => session.pendingIds.includes(callId) && !deciding.value.has(callId)
  /** The calls that the list shows and approves: none that came after it was opened, unless the tool is always allowed. */
  const listed = computed((): readonly CallEntry[] => {
    const { calls = [], always, reads } = listing.value ?? {}
    const one = always ?? reads
    if (!one) return calls.filter(isWaiting)
    if (!isWaiting(one)) return []
    void session.version
    return [one, ...(always ? coveredBy(always) : otherReads(toRaw(session.transcript).calls, one))]
  })
  function listAll(): void {
    listing.value = { calls: [...bulkApprovable.value] }
  }
  /** For the calls that a program has made together. */
  function listCalls(calls: readonly CallEntry[]): void {
    listing.value = { calls: [...calls] }
  }
  function listReads(reads: CallEntry): void {
    listing.value = { calls: [], reads }
  }
  function listAlways(always: CallEntry, given: Answer = { approved: true }): void {
    listing.value = { calls: [], always, given }
  }

  watch(
    () => session.sessionId,
    () => {
      deciding.value.clear()
      answered.clear()
      timelineOf.value = null
      listing.value = null
    },
    { flush: 'sync' }
  )

  watch(
    () => session.pending,
    (calls) => calls.forEach(views.restore),
    { immediate: true, flush: 'sync' }
  )
  /** An edit or a reason has no use when its call is decided elsewhere; it is kept for the person. */
  watch(
    () => session.pendingIds,
    (now, before) => {
      for (const id of before) {
        const call = callOf(toRaw(session.transcript), id)
        if (!call || now.includes(id)) continue
        views.forget(call)
        if (!deciding.value.has(id)) keepInput(call)
      }
    },
    // Runs before the card disappears and loses the focus.
    { flush: 'sync' }
  )
  function keepInput(call: CallEntry): void {
    const { mode, edit, reason } = views.viewOf(call.callId)
    const why = call.decision?.by === 'cancel' ? 'the turn has ended.' : 'this call was decided elsewhere.'
    const place = `[data-call="${CSS.escape(call.callId)}"]`
    if (mode === 'edit') kept.keep(`Your edit was not used: ${why}`, editedText(edit ?? [], call.args), place)
    if (mode === 'reject') kept.keep(`Your reason was not sent: ${why}`, reason, place)
  }

  /** A call that is asked about again has another hash, so the earlier decision does not count for it. */
  watch(
    () => session.pending.filter((call) => (answered.get(call.callId) ?? shownHash(call)) !== shownHash(call)),
    (again) => {
      for (const { callId } of again) {
        answered.delete(callId)
        deciding.value.delete(callId)
        Object.assign(views.viewOf(callId), { mode: 'decide', edit: null, made: {} })
      }
    }
  )

  async function answer(
    call: CallEntry,
    { approved, args, reason, remember, reads, choices, seenConflicts }: Answer
  ): Promise<void> {
    if (args && new Blob([JSON.stringify(args)]).size > MAX_EDIT_BYTES) return notices.show(EDIT_TOO_LONG, 'error')
    if (deciding.value.has(call.callId)) return
    deciding.value.add(call.callId)
    answered.set(call.callId, shownHash(call))
    const { editTarget, seen } = views.viewOf(call.callId)
    const target = args && editTarget
    const reply = await session.send('tool:approval', {
      ...{ callId: call.callId, approved, hash: shownHash(call) },
      ...(args ? { args } : approved && seen && { seen }),
      ...(target && { target }),
      ...(reason && { reason }),
      ...(remember && { remember }),
      ...(reads && { reads }),
      ...(choices && { choices, seenConflicts })
    })
    if (reply.ok) {
      if (remember)
        notices.show(
          `You always allowed ${revealPlainly(call.name)} in this session. “Ask again” in the settings ends that.`
        )
      return
    }
    deciding.value.delete(call.callId)
    // Someone else has decided it first.
    if (!session.pendingIds.includes(call.callId)) keepInput(call)
    if (reply.error.code === 'offline') sayOffline(approved)
    else notices.show(reply.error.message, 'error')
  }
  function sayOffline(approved: boolean): void {
    notices.showOffline(`Not ${approved ? 'approved' : 'rejected'}: there is no connection.`)
  }

  /** Approves the listed calls, each with the hash that was shown. */
  async function approveListed(): Promise<void> {
    if (!session.connected) return sayOffline(true)
    const { always, reads, given = { approved: true } } = listing.value ?? {}
    const one = always ?? reads
    const calls = one ? [one] : listed.value
    listing.value = null
    const more = always ? { remember: true } : reads ? { reads: true } : {}
    await Promise.all(calls.map((call) => answer(call, { ...given, ...more })))
  }

  return {
    ...{ deciding, timelineOf, redrawn, arrangement, bulkApprovable, answer, sayOffline },
    ...{ listing, listed, coveredBy, listAll, listCalls, listReads, listAlways, approveListed }
  }
})
