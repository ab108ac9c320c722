import { watch } from 'vue'
import { revealPlainly } from '../../contract/hidden-characters.ts'
import { notificationsWanted, notify } from '../notifications.ts'
import { useNotices } from '../stores/notices.ts'
import { useSession } from '../stores/session.ts'
import { useWaiting } from '../stores/waiting.ts'
import { count } from '../text/format.ts'

const NAME = 'MCP Orchestrator'
/** All that waits, and how many of it are reviews. */
function attentionText(waiting: number, reviews: number): string {
  const calls = waiting - reviews
  return [
    ...(calls > 0 || reviews === 0 ? [`${count(calls, 'tool call needs', 'tool calls need')} your approval.`] : []),
    ...(reviews > 0 ? [`${count(reviews, 'review waits', 'reviews wait')} for you.`] : [])
  ].join(' ')
}
const QUESTION = 'An MCP server asks you a question.'

/**
 * Shows calls that need approval in the tab's title and icon, announces them to screen readers, and sends notifications if wanted.
 * Also announces answers and errors. Rows of the conversation can't be live regions, because they are drawn again while scrolling.
 */
export function useAttention(title: () => string): void {
  const session = useSession()
  const notices = useNotices()
  const waiting = useWaiting()
  watch(
    [() => waiting.count, title],
    ([number, name]) => {
      const place = name === '' ? NAME : `${revealPlainly(name, 'prose')} · ${NAME}`
      document.title = number > 0 ? `(${number}) Needs your approval · ${place}` : place
      document.getElementById('favicon')?.setAttribute('href', faviconFor(number))
    },
    { immediate: true }
  )
  const texts = () => attentionText(waiting.count, waiting.reviewCount)
  watch([() => waiting.ids, texts] as const, ([ids, text], [before, textBefore]) => {
    if (text !== textBefore) notices.retract(textBefore)
    if (ids.every((id) => before.includes(id))) return
    notices.announce(text)
    // The same tag in all tabs, so that they show one notification.
    if (document.visibilityState === 'hidden' && notificationsWanted()) notify(text, 'waiting')
  })
  watch(
    () => session.questionIds.length,
    (open, before) => {
      if (open <= before) return
      notices.announce(QUESTION)
      if (document.visibilityState === 'hidden' && notificationsWanted()) notify(QUESTION, session.sessionId)
    }
  )
  session.onEvent(({ type, data }) => {
    if (type === 'agent:error') notices.announce(revealPlainly(data.message))
    // Another tab may have switched the model: say so, because calls that waited here are gone.
    if (type === 'session:notice' && data.code === 'approvals_cancelled') notices.show(revealPlainly(data.message))
    if (type === 'turn:end' && data.reason === 'done') notices.announce('The answer is complete.')
  })
}

/** The address of the tab's icon: the product's mark, or the number of things that wait for the person. */
function faviconFor(waiting: number): string {
  if (waiting === 0) return '/favicon.svg'
  const text = waiting > 99 ? '99+' : String(waiting)
  const size = { 1: 40, 2: 32, 3: 24 }[text.length] ?? 24
  const label = `<text x="32" y="${32 + size * 0.36}" font-family="sans-serif" font-weight="700" font-size="${size}" text-anchor="middle" fill="#fff">${text}</text>`
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="16" fill="#b45309"/>${label}</svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}
