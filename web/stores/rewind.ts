import { defineStore } from 'pinia'
import { shallowRef, toRaw, watch } from 'vue'
import { undoableRewind } from '../../contract/effects/taken-back.ts'
import type { TranscriptEntry } from '../../contract/transcript.ts'
import { useSession } from './session.ts'

export type RewindAction = 'rewind' | 'edit' | 'branch'

/** The entry whose menu was used, and the action that was chosen there. Also which of the parts that were taken back are unfolded. */
export const useRewind = defineStore('rewind', () => {
  const session = useSession()
  const target = shallowRef<{ action: RewindAction; entry: TranscriptEntry } | null>(null)
  /** By the `seq` of the first entry of each part. */
  const unfolded = shallowRef<ReadonlySet<number>>(new Set())

  function ask(action: RewindAction, entry: TranscriptEntry): void {
    target.value = { action, entry }
  }
  function toggle(first: number): void {
    const next = new Set(unfolded.value)
    if (!next.delete(first)) next.add(first)
    unfolded.value = next
  }
  /** Whether the model still has the entry in its history: it was not taken back or replaced, and no fresh start came after it. */
  function isRewindable({ seq, kind, rewound, superseded }: TranscriptEntry): boolean {
    if (rewound || superseded || (kind !== 'user' && kind !== 'agent' && kind !== 'call')) return false
    const { entries } = toRaw(session.transcript)
    return !entries.some((each) => each.seq > seq && each.kind === 'fresh-start')
  }
  function isUndoable({ seq }: TranscriptEntry): boolean {
    return undoableRewind(toRaw(session.transcript))?.seq === seq
  }
  const undo = ({ seq }: TranscriptEntry) => session.sendOrShow('history:restore', { of: seq })
  watch(
    () => session.sessionId,
    () => {
      target.value = null
      unfolded.value = new Set()
    }
  )
  return { target, unfolded, ask, toggle, isRewindable, isUndoable, undo }
})
