import { SERVER_EXIT } from '../protocol.ts'
import { endOtherProcesses } from './container-processes.ts'
import type { EpochFence } from './epoch-fence.ts'

const TAKE_OVER_MS = 3000

/**
 * Becomes the container's only server, or returns the exit code.
 *
 * The order makes two concurrent takeovers safe: the epoch is written first, then all others are killed, then the epoch is read
 * again. A server continues only if there is no higher epoch after it has killed the others. A server with a higher epoch that is
 * written later kills us after writing it, so we end before it serves. One that was written earlier is seen by the last read. The
 * lower one may kill the higher in between: then neither serves, and the higher owner's next try succeeds.
 */
export async function takeOver(
  fence: EpochFence,
  epoch: number,
  endOthers: typeof endOtherProcesses = endOtherProcesses
): Promise<number | null> {
  if (!fence.raise(epoch)) return SERVER_EXIT.staleEpoch
  const isMine = () => fence.current() <= epoch
  const alone = await endOthers({ deadlineMs: TAKE_OVER_MS, mayContinue: isMine })
  if (!isMine()) return SERVER_EXIT.staleEpoch
  return alone ? null : SERVER_EXIT.takeoverFailed
}
