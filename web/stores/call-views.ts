import { defineStore } from 'pinia'
import { reactive } from 'vue'
import type { PathTarget } from '../../contract/path-target.ts'

/** The view state of each call. Rows far from the screen are not drawn, and must look the same when they are drawn again. */
export interface CallView {
  /** Arguments of a decided call. */
  isOpen: boolean
  isOutputHidden: boolean
  isOutputTall: boolean
  mode: 'decide' | 'edit' | 'reject'
  edit: EditField[] | null
  reason: string
  /** The target of the edited path, as shown. */
  editTarget: PathTarget | null
  isTargetPending: boolean
}
interface EditField {
  name: string
  isText: boolean
  text: string
}

/** The arguments of a call for editing: strings as text, everything else as JSON. */
export function editFields(args: Record<string, unknown>): EditField[] {
  return Object.entries(args).map(([name, value]) => ({
    name,
    isText: typeof value === 'string',
    text: typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  }))
}

export function isEdited({ edit }: CallView, args: Record<string, unknown>): boolean {
  return edit !== null && JSON.stringify(edit) !== JSON.stringify(editFields(args))
}

const INBOX = 'inbox:'

export const useCallViews = defineStore('call-views', () => {
  const views = new Map<string, CallView>()

  function viewOf(callId: string): CallView {
    const known = views.get(callId)
    if (known) return known
    const view = reactive<CallView>({
      isOpen: false,
      isOutputHidden: false,
      isOutputTall: false,
      mode: 'decide',
      edit: null,
      reason: '',
      editTarget: null,
      isTargetPending: false
    })
    views.set(callId, view)
    return view
  }
  /** Clears the state when the session is left. Cards of the inbox belong to no session. */
  function clear(): void {
    for (const id of views.keys()) if (!id.startsWith(INBOX)) views.delete(id)
  }
  const hasInput = () => [...views.values()].some(({ edit, reason }) => edit !== null || reason !== '')
  return { viewOf, viewOfInbox: (id: string) => viewOf(INBOX + id), clear, hasInput }
})
