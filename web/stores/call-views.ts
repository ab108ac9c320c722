import { defineStore } from 'pinia'
import { markRaw, reactive } from 'vue'
import type { PathTarget } from '../../contract/path-target.ts'
import type { CallEntry } from '../../contract/transcript.ts'
import { recall, remember } from '../remembered.ts'
import type { MadeChoices } from '../text/effects/made-choices.ts'

/** The view state of each call. Rows far from the screen are not drawn, and must look the same when they are drawn again. */
export interface CallView {
  /** Arguments of a decided call. */
  isOpen: boolean
  isOutputHidden: boolean
  isOutputTall: boolean
  /** Every character is shown, also what a terminal would erase. */
  isOutputRaw: boolean
  mode: 'decide' | 'edit' | 'reject'
  edit: EditField[] | null
  reason: string
  /** The target of the edited path, as shown. */
  editTarget: PathTarget | null
  isTargetPending: boolean
  /** SHA-256 of the file that the card compares a write with. */
  seen?: string | undefined
  /** See composables/seen/seen-parts.ts. */
  seenTexts: Set<string>
  /** The end of a part of the card was not in view yet. */
  isUnseen: boolean
  /** Which version counts of the files with a conflict, in what a call did in a fork. */
  made: MadeChoices
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

/** The person's input: the fields that differ from the arguments, with their names if there are several. */
export function editedText(edit: readonly EditField[], args: Record<string, unknown>): string {
  const given = new Map(editFields(args).map(({ name, text }) => [name, text]))
  const changed = edit.filter(({ name, text }) => given.get(name) !== text)
  return changed.map(({ name, text }) => (changed.length > 1 ? `${name}:\n${text}` : text)).join('\n')
}

/** The edited arguments; null if a part is not valid JSON. */
export function editedArgs(edit: readonly EditField[]): Record<string, unknown> | null {
  try {
    return Object.fromEntries(edit.map(({ name, isText, text }) => [name, isText ? text : JSON.parse(text)]))
  } catch {
    return null
  }
}

const INBOX = 'inbox:'
/** The key of a stored edit or reason begins with this and ends with the id of the session. */
export const INPUT = 'input:'
/** Longer edits are lost on a reload: they would leave no room for drafts. */
const MAX_KEPT_CHARS = 200_000

export const useCallViews = defineStore('call-views', () => {
  const views = new Map<string, CallView>()
  const restored = new Set<string>()
  let session = ''

  function viewOf(callId: string): CallView {
    const known = views.get(callId)
    if (known) return known
    const view = reactive<CallView>({
      isOpen: false,
      isOutputHidden: false,
      isOutputTall: false,
      isOutputRaw: false,
      mode: 'decide',
      edit: null,
      reason: '',
      editTarget: null,
      isTargetPending: false,
      seenTexts: markRaw(new Set()),
      isUnseen: false,
      made: {}
    })
    views.set(callId, view)
    return view
  }
  /** Clears the state when another session is opened. Cards of the inbox belong to no session. */
  function enter(sessionId: string): void {
    session = sessionId
    restored.clear()
    for (const id of views.keys()) if (!id.startsWith(INBOX)) views.delete(id)
  }
  // The hash is a part of the key, because a model's provider may use the id of a call again.
  const keyOf = ({ callId, hash }: CallEntry) => `${INPUT}${callId}:${hash}:${session}`
  /** Keeps the person's edit or reason through a reload or a change of the session. */
  function keep(call: CallEntry): void {
    const { mode, edit, reason, made } = viewOf(call.callId)
    const isEmpty = mode === 'decide' && reason === '' && Object.keys(made).length === 0
    const kept = isEmpty ? '' : JSON.stringify({ mode, edit, reason, made })
    remember(keyOf(call), kept.length > MAX_KEPT_CHARS ? null : kept, 'tab')
  }
  function restore(call: CallEntry): void {
    const key = keyOf(call)
    if (restored.has(key)) return
    restored.add(key)
    const kept = recall(key, 'tab')
    if (kept) Object.assign(viewOf(call.callId), JSON.parse(kept))
  }
  /** The same for a card of the inbox, which has no edit and never changes. */
  function viewOfInbox(id: string): CallView {
    const key = INBOX + id
    if (views.has(key)) return viewOf(key)
    const reason = recall(INPUT + key, 'tab')
    return reason === null ? viewOf(key) : Object.assign(viewOf(key), { mode: 'reject', reason: reason.slice(1) })
  }
  /** Marked by a first character, so that a form that is still empty is kept too. */
  function keepInbox(id: string): void {
    const { mode, reason } = viewOfInbox(id)
    remember(INPUT + INBOX + id, mode === 'reject' ? `:${reason}` : null, 'tab')
  }
  const forgetInbox = (id: string) => remember(INPUT + INBOX + id, null, 'tab')
  const forget = (call: CallEntry) => remember(keyOf(call), null, 'tab')
  const hasInput = () => [...views.values()].some(({ edit, reason }) => edit !== null || reason !== '')
  return { viewOf, viewOfInbox, keepInbox, forgetInbox, enter, keep, restore, forget, hasInput }
})
