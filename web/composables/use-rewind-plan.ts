import { ref, shallowRef, toRaw } from 'vue'
import type { ChangedFile, ConflictChoices } from '../../contract/effects/change-set.ts'
import type { Version } from '../../contract/effects/effect-replies.ts'
import type { TranscriptEntry } from '../../contract/transcript.ts'
import { api, messageOf } from '../api.ts'
import { useSession } from '../stores/session.ts'

export interface RewindPlan {
  changeId: string
  scope: 'one' | 'since'
  hash: string
  files: readonly ChangedFile[]
}

/** What happens to the files of the workspace: of one call, or since an entry of the conversation. */
export function useRewindPlan(entry: TranscriptEntry, scope: RewindPlan['scope']) {
  const session = useSession()
  const plan = shallowRef<RewindPlan | null>(null)
  const isLoading = ref(true)
  const problem = ref('')
  const isThinned = ref(false)

  async function load(): Promise<void> {
    isLoading.value = true
    problem.value = ''
    try {
      const changeId = scope === 'one' ? changeOf(entry) : await firstSince()
      plan.value = changeId === undefined ? null : await planOf(changeId)
    } catch (error) {
      plan.value = null
      problem.value = `The files can't be put back now: ${messageOf(error)}`
    }
    isLoading.value = false
  }
  async function planOf(changeId: string): Promise<RewindPlan> {
    return { changeId, scope, ...(await api.revertPlan(session.sessionId, changeId, scope)) }
  }
  function changeOf(of: TranscriptEntry): string | undefined {
    const call = of.kind === 'call' ? toRaw(session.transcript).calls[of.callId] : undefined
    return call?.result?.changes?.changeId
  }
  /** The oldest version of the workspace that was made after the entry. */
  async function firstSince(): Promise<string | undefined> {
    let first: string | undefined
    for (;;) {
      const query = first === undefined ? {} : { before: first }
      const { versions, hasMore, isThinned: isCut } = await api.versions(session.sessionId, query)
      const since = versions.filter(isSince)
      first = since.at(-1)?.changeId ?? first
      isThinned.value = isCut && !hasMore && since.length === versions.length
      if (!hasMore || since.length < versions.length || since.length === 0) return first
    }
  }
  function isSince({ at, about }: Version): boolean {
    const { entries } = toRaw(session.transcript)
    const call = entries.find((each) => each.kind === 'call' && each.callId === about.callId)
    return call ? call.seq >= entry.seq : at >= entry.at
  }

  /** Files that have another content by now than the plan expects stay as they are: nothing is overwritten unseen. */
  async function revert(): Promise<boolean> {
    if (!plan.value) return true
    const { changeId, hash, files } = plan.value
    const choices: ConflictChoices = {}
    for (const { path, conflict } of files) if (conflict) choices[path] = 'workspace'
    const reply = await session.send('files:revert', { changeId, scope, hash, choices })
    if (reply.ok) return true
    await load()
    problem.value = reply.error.message
    return false
  }
  return { plan, isLoading, problem, isThinned, load, revert }
}
