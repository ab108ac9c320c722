import { SERVER_EXIT } from '../protocol.ts'
import { endOtherProcesses } from './container-processes.ts'
import type { EpochFence } from './epoch-fence.ts'

const TAKE_OVER_MS = 3000

/**
 * Becomes the container's only server, or returns the code to exit with.
 *
 * The order makes two racing takeovers safe. The epoch is written first, then everyone else is killed, then the epoch is read
 * again. A server goes on only if, after its own killing is over, no higher epoch is there. A higher one that is written later
 * kills after it wrote, so it ends us before it serves; one that was written earlier is seen by the last look. The lower one may
 * kill the higher in between: then neither serves, and the higher owner's next try succeeds.
 */
export async function takeOver(
  fence: EpochFence,
  epoch: number,
  endOthers: typeof endOtherProcesses = endOtherProcesses
): Promise<number | null> {
  if (!fence.raise(epoch)) return SERVER_EXIT.staleEpoch
  const isMine = () => fence.current() <= epoch
  const alone = await endOthers({ deadlineMs: TAKE_OVER_MS, mayGoOn: isMine })
  if (!isMine()) return SERVER_EXIT.staleEpoch
  return alone ? null : SERVER_EXIT.takeoverFailed
}
