/** Which session this tab is on: the address says it, so that a link, a reload and the back button do what one expects. */
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
  // Another part of the page is open: the session comes into the address when its own part does.
  if (/^#\/(servers|activity)/.test(location.hash)) return
  const hash = `#/s/${sessionId}`
  if (location.hash === '') history.replaceState(null, '', hash)
  else if (location.hash !== hash) history.pushState(null, '', hash)
}
