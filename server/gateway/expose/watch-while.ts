import { messageOf } from '../../lib/errors.ts'
import type { ClientLane } from './client-lane.ts'
import type { Exposed } from './exposed.ts'
import { findResource } from './list-all.ts'
import { watchOn } from './pass-on.ts'

/** Keeps the subscriptions of one stream until its signal aborts. */
export async function watchWhile(
  exposed: Exposed,
  lane: ClientLane,
  uris: string[],
  signal: AbortSignal
): Promise<void> {
  for (const uri of uris) {
    if (signal.aborted) return
    const target = await findResource(exposed, uri, lane.caller, signal)
    if (target === undefined) continue
    try {
      await watchOn(exposed, lane, target, signal)
      const end = () => void lane.unwatch(target.server, target.name).catch(() => {})
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
    } catch (error) {
      exposed.logger.debug({ server: target.server }, `A subscription failed: ${messageOf(error)}`)
    }
  }
}
