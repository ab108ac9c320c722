/**
 * The transcript of the open session, computed from the server's events. If an event does not follow directly on the last one, it is
 * not applied, and `missed` requests a new snapshot.
 */
import { type Ref, reactive, ref, shallowRef, toRaw } from 'vue'
import type { SessionEvent } from '../../contract/events.ts'
import type { Snapshot } from '../../contract/live.ts'
import { applyEvent, emptyTranscript, type Transcript } from '../../contract/transcript.ts'
import { api } from '../api.ts'
import { useNotices } from './notices.ts'
import { withOlderEntries } from './older-entries.ts'

const CONVERSATION_RESTARTED = 'The server lost its state: this conversation starts again from the beginning.'

interface SyncListener {
  applied(event: SessionEvent): void
  replaced(): void
  missed(): void
}

export function syncedTranscript(sessionId: Ref<string>, listener: SyncListener) {
  const notices = useNotices()
  const transcript = shallowRef<Transcript>(reactive(emptyTranscript()))
  /** Counts applied events. Code that reads the whole transcript depends on this number instead of on every field. */
  const version = ref(0)
  /** Entries before this `seq` are not loaded yet; null if all are loaded. */
  const olderBefore = ref<number | null>(null)
  const isLoadingOlder = ref(false)
  let isInSync = false

  function clear(): void {
    replace(emptyTranscript())
    olderBefore.value = null
  }

  function replace(whole: Transcript): void {
    transcript.value = reactive(whole)
    listener.replaced()
    version.value += 1
  }

  /** Returns false if the snapshot is older than events that arrived meanwhile and will not be sent again. */
  function takeSnapshot(snapshot: Snapshot): boolean {
    const known = toRaw(transcript.value)
    if (isInSync && snapshot.seq < known.seq) return false
    // The session has fewer events than before, so the server has lost its state.
    if (snapshot.seq < known.seq) notices.show(CONVERSATION_RESTARTED)
    const joined = withOlderEntries(known, snapshot)
    replace(joined ?? snapshot.transcript)
    if (!joined) olderBefore.value = snapshot.olderBefore ?? null
    isInSync = true
    return true
  }

  function take(event: SessionEvent): void {
    const last = toRaw(transcript.value).seq
    if (!isInSync || event.seq <= last) return
    if (event.seq !== last + 1) {
      isInSync = false
      listener.missed()
      return
    }
    applyEvent(transcript.value, event)
    version.value += 1
    listener.applied(event)
  }

  /** Loads one more page of older entries that the snapshot left out. */
  async function loadOlder(): Promise<void> {
    const [id, before] = [sessionId.value, olderBefore.value]
    if (before === null || isLoadingOlder.value) return
    isLoadingOlder.value = true
    await notices.attempt(async () => {
      const page = await api.entries(id, before)
      if (sessionId.value !== id || olderBefore.value !== before) return
      const { entries, calls } = transcript.value
      entries.unshift(...page.entries)
      for (const [callId, call] of Object.entries(page.calls)) if (!Object.hasOwn(calls, callId)) calls[callId] = call
      olderBefore.value = page.olderBefore
      version.value += 1
    })
    isLoadingOlder.value = false
  }

  return {
    ...{ transcript, version, olderBefore, clear, takeSnapshot, take, loadOlder },
    isInSync: () => isInSync,
    /** Ignores events until the next snapshot. */
    suspend: () => {
      isInSync = false
    }
  }
}
