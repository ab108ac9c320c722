/** Parts of the page are loaded when needed: after an upgrade the server has others by another name, and offline there are none. */
import { useApprovals } from './stores/approvals.ts'
import { useCallViews } from './stores/call-views.ts'
import { useFiles } from './stores/files.ts'
import { useInbox } from './stores/inbox.ts'
import { useNotices } from './stores/notices.ts'
import { usePlace } from './stores/place.ts'

const RELOADED_AT = 'mcp-orchestrator:reloaded-at'
const RELOAD_AT_MOST_EVERY_MS = 60_000
/** Some browsers remember that a module failed: only a new page asks for it again. */
const SORRY = 'A part of this page could not be loaded. Reload the page to try again.'

export function watchMissingParts(): void {
  let isLooking = false
  addEventListener('vite:preloadError', async () => {
    if (isLooking) return
    isLooking = true
    if ((await isServerThere()) && !isWriting() && mayReload()) return location.reload()
    isLooking = false
    closeWhatIsMissing()
    const notices = useNotices()
    if (!notices.toasts.some(({ text }) => text === SORRY)) notices.show(SORRY, 'error')
  })
}

async function isServerThere(): Promise<boolean> {
  try {
    return (await fetch('/healthz', { cache: 'no-store' })).ok
  } catch {
    return false
  }
}

/** So that the next click asks for it anew. */
function closeWhatIsMissing(): void {
  if (!document.querySelector('dialog[open]')) {
    useInbox().isShown = false
    useApprovals().timelineOf = null
    useApprovals().listing = null
  }
  if (!document.querySelector('main header')) usePlace().toChat()
}

/** In some other place than the composer, whose text outlives a reload; on screen or scrolled away. */
function isWriting(): boolean {
  const fields = document.querySelectorAll<HTMLInputElement>('textarea:not(#composer), input')
  return useFiles().isUploading || useCallViews().isWritten() || [...fields].some(({ value }) => value !== '')
}

/** A part that is missing from the new page too must not reload it for ever. */
function mayReload(): boolean {
  try {
    if (Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) < RELOAD_AT_MOST_EVERY_MS) return false
    sessionStorage.setItem(RELOADED_AT, String(Date.now()))
    return true
  } catch {
    return false
  }
}
