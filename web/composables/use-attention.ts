import { watch } from 'vue'
import { revealPlainly } from '../../contract/hidden-characters.ts'
import { notificationsWanted, notify } from '../notifications.ts'
import { useNotices } from '../stores/notices.ts'
import { useSession } from '../stores/session.ts'
import { useWaiting } from '../stores/waiting.ts'
import { count } from '../text/format.ts'

const NAME = 'MCP Orchestrator'
const COMPLETE = 'The answer is complete.'

type Waiting = Pick<ReturnType<typeof useWaiting>, 'callCount' | 'questionCount' | 'reviewCount'>

function attentionText({ callCount, questionCount, reviewCount }: Waiting): string {
  return [
    ...(callCount > 0 ? [`${count(callCount, 'tool call needs', 'tool calls need')} your approval.`] : []),
    ...(questionCount > 0
      ? [`${count(questionCount, 'question of an MCP server waits', 'questions of MCP servers wait')} for your answer.`]
      : []),
    ...(reviewCount > 0 ? [`${count(reviewCount, 'review waits', 'reviews wait')} for you.`] : [])
  ].join(' ')
}

function neededNow({ callCount, questionCount }: Waiting): string {
  if (callCount > 0) return 'approval'
  return questionCount > 0 ? 'answer' : 'review'
}

/**
 * Shows what waits for the person in the tab's title and icon, announces them to screen readers, and sends notifications if wanted.
 * Also announces answers and errors. Rows of the conversation can't be live regions, because they are drawn again while scrolling.
 */
export function useAttention(title: () => string): void {
  const session = useSession()
  const notices = useNotices()
  const waiting = useWaiting()
  watch(
    [() => waiting.count, title, () => neededNow(waiting)],
    ([number, name]) => {
      const place = name === '' ? NAME : `${revealPlainly(name, 'prose')} · ${NAME}`
      document.title = number > 0 ? `(${number}) Needs your ${neededNow(waiting)} · ${place}` : place
      document.getElementById('favicon')?.setAttribute('href', faviconFor(number))
    },
    { immediate: true }
  )
  const texts = () => attentionText(waiting)
  watch([() => waiting.ids, texts] as const, ([ids, text], [before, textBefore]) => {
    if (text !== textBefore) notices.retract(textBefore)
    if (ids.every((id) => before.includes(id))) return
    notices.announce(text)
    // The same tag in all tabs, so that they show one notification.
    if (document.visibilityState === 'hidden' && notificationsWanted()) notify(text, 'waiting')
  })
  session.onEvent(({ type, data }) => {
    if (type === 'agent:error') notices.announce(revealPlainly(data.message))
    // Another tab may have switched the model: say so, because calls that waited here are gone.
    if (type === 'session:notice' && data.code === 'approvals_cancelled') notices.show(revealPlainly(data.message))
    if (type !== 'turn:end' || data.reason !== 'done') return
    notices.announce(COMPLETE)
    if (document.visibilityState === 'hidden' && notificationsWanted()) notify(COMPLETE, session.sessionId)
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
