import { computed, onUnmounted, ref, shallowRef, watch } from 'vue'
import type { ChangedFile } from '../../contract/effects/change-set.ts'
import { api, messageOf } from '../api.ts'
import type { ShownChanges } from '../stores/effects/changes-view.ts'
import { FILE_EVENTS } from '../stores/files.ts'
import { useSession } from '../stores/session.ts'

/**
 * All files of a change set, as the server lists them now: an event has only the first of them, and it does not know what has changed
 * in the workspace since. Until the list is there, the files of the event are shown.
 */
export function useChangedFiles(summary: () => ShownChanges | null, onChange: () => void = () => {}) {
  const session = useSession()
  const listed = shallowRef<{ hash: string; files: ChangedFile[] } | null>(null)
  const problem = ref('')
  const isLoading = ref(false)
  let round = 0

  async function load(): Promise<void> {
    const wanted = summary()
    const mine = ++round
    if (!wanted || !session.connected) return
    // A call that changed nothing has no change set.
    if (wanted.total === 0) {
      listed.value = { hash: wanted.hash ?? '', files: [] }
      return
    }
    isLoading.value = true
    try {
      const { hash, files } = await api.changes(session.sessionId, wanted.changeId)
      if (mine !== round) return
      problem.value = ''
      if (JSON.stringify(listed.value?.files) !== JSON.stringify(files)) onChange()
      listed.value = { hash, files }
    } catch (error) {
      if (mine === round) problem.value = messageOf(error)
    } finally {
      if (mine === round) isLoading.value = false
    }
  }
  watch([() => summary()?.hash, () => session.connected], load, { immediate: true })
  // Other files may mean other conflicts.
  onUnmounted(session.onEvent(({ type }) => FILE_EVENTS.has(type) && void load()))

  /** Whether the list is that of the changes that are being decided about. */
  const isCurrent = computed(() => {
    const { hash } = summary() ?? { hash: '' }
    return listed.value !== null && (hash === undefined || listed.value.hash === hash)
  })
  const files = computed(() => (isCurrent.value ? listed.value?.files : summary()?.files) ?? [])
  const conflicts = computed(() => files.value.filter(({ conflict }) => conflict !== undefined))
  return { files, conflicts, isCurrent, isLoading, problem, load }
}
