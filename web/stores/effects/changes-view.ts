import { defineStore } from 'pinia'
import { shallowRef, watch } from 'vue'
import type { ChangeSummary } from '../../../contract/effects/change-set.ts'
import { useSession } from '../session.ts'

/** Without the hash, whatever the server lists is what is shown. */
export type ShownChanges = Omit<ChangeSummary, 'hash'> & { hash?: string }

/** The change set on the whole screen: the files of a preview, of a call or of a version. */
export const useChangesView = defineStore('changes-view', () => {
  const session = useSession()
  const shown = shallowRef<{ title: string; changes: ShownChanges } | null>(null)
  function show(title: string, changes: ShownChanges): void {
    shown.value = { title, changes }
  }
  watch(
    () => session.sessionId,
    () => {
      shown.value = null
    }
  )
  return { shown, show }
})
