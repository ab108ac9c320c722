import { AppError } from '../../../lib/errors.ts'
import type { ForkedWork } from './forked-work.ts'

/** For tests without an engine. */
export function noForks(): ForkedWork {
  const refuse = async () => {
    throw new AppError('unavailable', 'fork_failed', 'There are no forks in this test.')
  }
  return {
    previewed: [],
    preview: refuse,
    keep: refuse,
    discard: async () => {},
    run: refuse,
    review: async () => undefined,
    applyReview: async () => ({ changes: undefined, files: undefined }),
    reopenReview: async () => undefined
  }
}
