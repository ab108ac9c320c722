/** Handles parts of the page that can't be loaded when needed: after an upgrade they have other names, and offline there are none. */
import { useApprovals } from './stores/approvals.ts'
import { useCallViews } from './stores/call-views.ts'
import { useFiles } from './stores/files.ts'
import { useInbox } from './stores/inbox.ts'
import { useNotices } from './stores/notices.ts'
import { usePlace } from './stores/place.ts'

const RELOADED_AT = 'mcp-orchestrator:reloaded-at'
const MIN_RELOAD_INTERVAL_MS = 60_000
/** Some browsers remember that a module failed, and request it again only after a reload. */
const LOAD_FAILED = 'A part of this page could not be loaded. Reload the page to try again.'

export function watchMissingParts(): void {
  let isHandling = false
  addEventListener('vite:preloadError', async () => {
    if (isHandling) return
    isHandling = true
    if ((await isServerThere()) && !hasUnsavedInput() && mayReload()) return location.reload()
    isHandling = false
    closeMissingParts()
    const notices = useNotices()
    if (!notices.toasts.some(({ text }) => text === LOAD_FAILED)) notices.show(LOAD_FAILED, 'error')
  })
}

async function isServerThere(): Promise<boolean> {
  try {
    return (await fetch('/healthz', { cache: 'no-store' })).ok
  } catch {
    return false
  }
}

/** Closes what could not be loaded, so that the next click tries again. */
function closeMissingParts(): void {
  if (!document.querySelector('dialog[open]')) {
    useInbox().isShown = false
    useApprovals().timelineOf = null
    useApprovals().listing = null
  }
  if (!document.querySelector('main header')) usePlace().toChat()
}

/** Whether a reload would lose input. The composer's text survives one. */
function hasUnsavedInput(): boolean {
  const fields = document.querySelectorAll<HTMLInputElement>('textarea:not(#composer), input')
  return useFiles().isUploading || useCallViews().hasInput() || [...fields].some(({ value }) => value !== '')
}

/** Prevents endless reloads if the part is missing from the new page too. */
function mayReload(): boolean {
  try {
    if (Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) < MIN_RELOAD_INTERVAL_MS) return false
    sessionStorage.setItem(RELOADED_AT, String(Date.now()))
    return true
  } catch {
    return false
  }
}
