/**
 * News for all open pages: changes in an owner's list of sessions, on every instance, and in the inbox. It says what has changed
 * and decides nothing. Owners hear of their own sessions only.
 */
import { isAppError } from '../lib/errors.ts'
import type { Io, SocketServerOptions } from './socket-options.ts'

/** Changes of a session within this time are sent once. */
const GATHER_MS = 150
/** The gateway that asks may be another process, which writes into the same store. */
const INBOX_EVERY_MS = 400

type Options = Pick<SocketServerOptions, 'feed' | 'access' | 'directory' | 'inbox' | 'logger'>

/** Every socket has a room named like its id, and clients choose the ids of sessions: without a prefix, one could be the other. */
export const sessionRoom = (sessionId: string) => `session:${sessionId}`
export const ownerRoom = (owner: string) => `owner:${owner}`

export function openNews(io: Io, options: Options): () => void {
  const { feed } = options
  const due = new Map<string, NodeJS.Timeout>()
  const unsubscribe = feed.subscribe({
    changed(sessionId) {
      if (due.has(sessionId)) return
      const timer = setTimeout(() => {
        due.delete(sessionId)
        void tellChange(io, sessionId, options)
      }, GATHER_MS)
      due.set(sessionId, timer.unref())
    },
    gone(sessionId, owner) {
      if (owner) io.to(ownerRoom(owner)).emit('session:changed', { sessionId, summary: null })
    }
  })
  const stopInbox = watchInbox(io, options)
  return () => {
    unsubscribe()
    stopInbox()
    for (const timer of due.values()) clearTimeout(timer)
  }
}

async function tellChange(io: Io, sessionId: string, { access, directory, logger }: Options): Promise<void> {
  try {
    const owner = await access.ownerOf(sessionId)
    const news = { sessionId, summary: await directory.summary(sessionId) }
    io.to(ownerRoom(owner)).emit('session:changed', news)
  } catch (error) {
    // It was deleted meanwhile, or the store does not answer; the page loads its list again after a while.
    if (!isAppError(error, 'unknown_session'))
      logger.debug({ err: error, sessionId }, 'Could not tell clients that a session changed.')
  }
}

/** Every instance looks for itself, and tells its own clients. */
function watchInbox(io: Io, { inbox, logger }: Options): () => void {
  let known = ''
  let isOver = false
  let timer: NodeJS.Timeout
  const look = async () => {
    if (io.engine.clientsCount === 0) return
    const ids = (await inbox.open()).map(({ id }) => id)
    if (ids.join() === known) return
    known = ids.join()
    io.local.emit('inbox:changed', { ids })
  }
  const again = () => {
    if (isOver) return
    timer = setTimeout(() => {
      look()
        .catch((error) => logger.debug({ err: error }, 'The inbox could not be read.'))
        .finally(again)
    }, INBOX_EVERY_MS).unref()
  }
  again()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}
