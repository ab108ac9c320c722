import { defineStore } from 'pinia'
import { shallowRef, watch } from 'vue'
import type { ChangeSummary } from '../../../contract/effects/change-set.ts'
import { useSession } from '../session.ts'

/** The change set on the whole screen: the files of a preview, of a call or of a version. */
export const useChangesView = defineStore('changes-view', () => {
  const session = useSession()
  const shown = shallowRef<{ title: string; changes: ChangeSummary; paths?: string[] } | null>(null)
  /** With `paths`, only these of its files. */
  function show(title: string, changes: ChangeSummary, paths?: string[]): void {
    shown.value = { title, changes, ...(paths && { paths }) }
  }
  watch(
    () => session.sessionId,
    () => {
      shown.value = null
    }
  )
  return { shown, show }
})
