import { computed, onUnmounted, watch } from 'vue'
import { pathOf } from '../../contract/path-target.ts'
import type { CallEntry } from '../../contract/transcript.ts'
import type { CallView } from '../stores/call-views.ts'
import { useSession } from '../stores/session.ts'

const TYPING_MS = 300

/**
 * Asks the server where the path of edited arguments leads. An edit can't be approved before the server has answered. The approval
 * contains the answer that was shown (`view.editTarget`).
 */
export function useEditTarget(call: CallEntry, view: CallView, args: () => Record<string, unknown> | null) {
  const session = useSession()
  const path = computed(() => pathOf(call, args() ?? {}))
  let timer: ReturnType<typeof setTimeout> | undefined
  let round = 0

  watch(
    path,
    (named) => {
      clearTimeout(timer)
      round += 1
      view.editTarget = named === pathOf(call, call.args) ? (call.target ?? null) : null
      view.isTargetPending = named !== undefined && named !== pathOf(call, call.args)
      if (view.isTargetPending) timer = setTimeout(() => void ask(round), TYPING_MS)
    },
    { immediate: true }
  )
  onUnmounted(() => {
    clearTimeout(timer)
    round += 1
  })

  async function ask(mine: number): Promise<void> {
    // Only the path counts; the content of a file may be too long for a command.
    const short = Object.entries(args() ?? {}).filter(([, value]) => typeof value !== 'string' || value.length < 10_000)
    const reply = await session.send('tool:target', { callId: call.callId, args: Object.fromEntries(short) })
    if (mine !== round) return
    view.editTarget = reply.ok && 'target' in reply ? (reply.target as CallView['editTarget']) : null
    view.isTargetPending = false
  }

  /** There is a path, but the server could not check where it leads. */
  const isUnknown = computed(() => path.value !== undefined && !view.isTargetPending && view.editTarget === null)
  return { isUnknown }
}
