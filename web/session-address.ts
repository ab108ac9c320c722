/** The address contains the session of this tab, so that links, reloads and the back button work as expected. */
import { newId } from './new-id.ts'
import { recall, remember } from './remembered.ts'

const PATTERN = /^#\/s\/([A-Za-z0-9_-]{8,100})$/

export function addressedSession(): string | null {
  return PATTERN.exec(location.hash)?.[1] ?? null
}

export function firstSession(): { sessionId: string; isRemembered: boolean } {
  const addressed = addressedSession()
  if (addressed) return { sessionId: addressed, isRemembered: false }
  const last = recall('last-session')
  return last ? { sessionId: last, isRemembered: true } : { sessionId: newId(), isRemembered: false }
}

export function addressSession(sessionId: string): void {
  remember('last-session', sessionId)
  // Another view is open. The session is added to the address when the chat is opened.
  if (/^#\/(servers|activity)/.test(location.hash)) return
  const hash = `#/s/${sessionId}`
  if (location.hash === '') history.replaceState(null, '', hash)
  else if (location.hash !== hash) history.pushState(null, '', hash)
}
