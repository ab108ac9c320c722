/** The address contains the session of this tab, so that links, reloads and the back button work as expected. */
import { recall, remember } from './remembered.ts'

const PATTERN = /^#\/s\/([A-Za-z0-9_-]{8,100})$/

export function addressedSession(): string | null {
  return PATTERN.exec(location.hash)?.[1] ?? null
}

/** Without a session in the address and in memory, a new one is opened. */
export function firstSession(): { sessionId: string | null; isRemembered: boolean } {
  const addressed = addressedSession()
  if (addressed) return { sessionId: addressed, isRemembered: false }
  const last = recall('last-session')
  return { sessionId: last, isRemembered: last !== null }
}

export function addressSession(sessionId: string): void {
  remember('last-session', sessionId)
  // Another view is open. The session is added to the address when the chat is opened.
  if (/^#\/(servers|activity)/.test(location.hash)) return
  const hash = `#/s/${sessionId}`
  if (location.hash === '') history.replaceState(null, '', hash)
  else if (location.hash !== hash) history.pushState(null, '', hash)
}
