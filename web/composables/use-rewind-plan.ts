import { computed, ref, shallowRef, toRaw, watch } from 'vue'
import type { ConflictChoices } from '../../contract/effects/change-set.ts'
import type { RevertPlanReply, Version } from '../../contract/effects/effect-replies.ts'
import type { TranscriptEntry } from '../../contract/transcript.ts'
import { api, messageOf } from '../api.ts'
import { useHistory } from '../stores/effects/history.ts'
import { useSession } from '../stores/session.ts'

/** Plans what happens to the files of the workspace that have changed since an entry of the conversation. */
export function useRewindPlan(entry: TranscriptEntry) {
  const session = useSession()
  const history = useHistory()
  const plan = shallowRef<(RevertPlanReply & { changeId: string }) | null>(null)
  const isLoading = ref(true)
  const problem = ref('')
  const isThinned = ref(false)
  /** Files that the person changed themselves since then. */
  const own = shallowRef<ReadonlySet<string>>(new Set())
  /** True while a command runs: its changes are not known yet, and the server puts nothing back. */
  const isRunning = computed(() => {
    void session.version
    const { calls, turnId } = toRaw(session.transcript)
    return Object.values(calls).some((call) => call.turnId === turnId && call.startedAt !== undefined && !call.result)
  })
  watch(isRunning, (runs) => !runs && void load())

  async function load(): Promise<void> {
    isLoading.value = true
    problem.value = ''
    try {
      const changeId = await firstSince()
      const reply = changeId === undefined ? null : await api.revertPlan(session.sessionId, changeId, 'since')
      plan.value = reply && { changeId: changeId ?? '', ...reply }
    } catch (error) {
      plan.value = null
      problem.value = `The files can't be put back now: ${messageOf(error)}`
    }
    isLoading.value = false
  }
  /** The oldest version of the workspace that was made after the entry. */
  async function firstSince(): Promise<string | undefined> {
    let first: string | undefined
    const ours = new Set<string>()
    own.value = ours
    for (;;) {
      const query = first === undefined ? {} : { before: first }
      const { versions, hasMore, isThinned: isCut } = await api.versions(session.sessionId, query)
      const since = versions.filter(isSince)
      for (const { about, files } of since) if (about.by === 'person') for (const { path } of files) ours.add(path)
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
    const left = files.filter(({ conflict }) => conflict)
    const choices: ConflictChoices = Object.fromEntries(left.map(({ path }) => [path, 'workspace']))
    const total = files.length - left.length
    const isDone = await history.revert({ changeId, scope: 'since', hash, choices, total })
    if (!isDone) await load()
    return isDone
  }
  return { plan, isLoading, problem, isThinned, own, isRunning, load, revert }
}
