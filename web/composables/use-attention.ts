import { watch } from 'vue'
import { revealPlainly } from '../../contract/hidden-characters.ts'
import { notificationsWanted, notify } from '../notifications.ts'
import { useInbox } from '../stores/inbox.ts'
import { useNotices } from '../stores/notices.ts'
import { useSession } from '../stores/session.ts'
import { count } from '../text/format.ts'

const NAME = 'MCP Orchestrator'

/**
 * A call that waits for a person shows in the tab's title and icon, to screen readers, and, if wanted, as a notification. Screen
 * readers also hear of an answer and of an error: rows of the conversation come and go with scrolling, and can't be their own news.
 */
export function useAttention(title: () => string): void {
  const session = useSession()
  const notices = useNotices()
  const inbox = useInbox()
  const waitingIds = () => [...session.pendingIds, ...inbox.cards.map(({ id }) => id)]
  watch(
    [() => waitingIds().length, title],
    ([waiting, name]) => {
      const place = name === '' ? NAME : `${revealPlainly(name, 'prose')} · ${NAME}`
      document.title = waiting > 0 ? `(${waiting}) Needs your approval · ${place}` : place
      const icon = document.getElementById('favicon')
      icon?.setAttribute('href', waiting > 0 ? '/favicon-waiting.svg' : '/favicon.svg')
    },
    { immediate: true }
  )
  watch(waitingIds, (waiting, before) => {
    if (waiting.every((id) => before.includes(id))) return
    const text = `${count(waiting.length, 'tool call needs', 'tool calls need')} your approval.`
    notices.announce(text)
    if (document.visibilityState === 'hidden' && notificationsWanted()) notify(text, session.sessionId)
  })
  session.onEvent(({ type, data }) => {
    if (type === 'agent:error') notices.announce(revealPlainly(data.message))
    // Whoever switched the model, maybe in another tab: nothing that waited here goes away without a word.
    if (type === 'session:notice' && data.code === 'approvals_cancelled') notices.show(revealPlainly(data.message))
    if (type === 'turn:end' && data.reason === 'done') notices.announce('The answer is complete.')
  })
}
