import { defineStore } from 'pinia'
import { ref, shallowRef, toRaw, watch } from 'vue'
import type { ChosenPaths, ConflictChoices } from '../../../contract/effects/change-set.ts'
import type { Version } from '../../../contract/effects/effect-replies.ts'
import { callOf } from '../../../contract/transcript.ts'
import { api, messageOf } from '../../api.ts'
import { callSummary } from '../../text/calls/call-summary.ts'
import { filesWords } from '../../text/effects/change-words.ts'
import { FILE_EVENTS, useFiles } from '../files.ts'
import { useNotices } from '../notices.ts'
import { useSession } from '../session.ts'

export interface Revert {
  changeId: string
  scope: 'one' | 'since'
}

/** The versions of the workspace, newest first, and the revert that the person is asked about. */
export const useHistory = defineStore('history', () => {
  const session = useSession()
  const files = useFiles()
  const notices = useNotices()
  const isShown = ref(false)
  const versions = shallowRef<Version[]>([])
  const isThinned = ref(false)
  const hasMore = ref(false)
  const isLoading = ref(false)
  const problem = ref('')
  /** The file whose versions are on the screen. */
  const path = ref<string | null>(null)
  const reverting = shallowRef<Revert | null>(null)
  let round = 0

  async function load(before?: string): Promise<void> {
    const mine = ++round
    isLoading.value = true
    try {
      const page = await api.versions(session.sessionId, before === undefined ? {} : { before })
      if (mine !== round) return
      versions.value = before === undefined ? page.versions : [...versions.value, ...page.versions]
      isThinned.value = page.isThinned
      hasMore.value = page.hasMore
      problem.value = ''
    } catch (error) {
      if (mine === round) problem.value = messageOf(error)
    } finally {
      if (mine === round) isLoading.value = false
    }
  }
  const loadMore = () => load(versions.value.at(-1)?.changeId)

  watch(
    () => session.sessionId,
    () => {
      round += 1
      versions.value = []
      isThinned.value = hasMore.value = isShown.value = false
      path.value = reverting.value = null
    },
    { flush: 'sync' }
  )
  watch([isShown, () => session.connected], ([shown, connected]) => shown && connected && void load())
  session.onEvent(({ type }) => isShown.value && FILE_EVENTS.has(type) && void load())

  /** Describes the origin of a version. The text may come from a model: show it with VisibleText. */
  function aboutWords({ about, changeId }: Version): string {
    const call = about.callId === undefined ? undefined : callOf(toRaw(session.transcript), about.callId)
    if (call) return callSummary(call)
    if (about.by === 'review') return 'You accepted a review'
    if (about.by === 'person') return 'You changed files'
    if (about.by === 'background') return 'Changed by a process that went on running'
    if (about.by === 'revert')
      return about.scope === 'since' ? 'You went back to an earlier version' : 'You undid a change'
    return `A call of the model (${changeId.replace(/^call:/, '')})`
  }

  /** Sends the plan that was shown. Returns false if it was refused. */
  async function revert(
    plan: Revert & { hash: string; paths?: ChosenPaths; choices?: ConflictChoices; total: number }
  ): Promise<boolean> {
    const { total, ...input } = plan
    const reply = await session.send('files:revert', input)
    if (reply.ok) {
      notices.show(`Reverted ${filesWords(total)}. You can undo that in the history too.`)
      if (files.isShown) void files.load()
    } else if (reply.error.code === 'offline') notices.showOffline('Nothing was reverted: there is no connection.')
    else notices.show(reply.error.message, 'error')
    return reply.ok
  }

  return {
    ...{ isShown, versions, isThinned, hasMore, isLoading, problem, path, reverting },
    ...{ load, loadMore, aboutWords, revert }
  }
})
