import { defineStore } from 'pinia'
import { shallowRef, watch } from 'vue'
import type { ChangeSummary } from '../../../contract/effects/change-set.ts'
import { useSession } from '../session.ts'

/** The change set on the whole screen: the files of a preview, of a call or of a version. */
export const useChangesView = defineStore('changes-view', () => {
  const session = useSession()
  const shown = shallowRef<{ title: string; changes: ChangeSummary } | null>(null)
  function show(title: string, changes: ChangeSummary): void {
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
