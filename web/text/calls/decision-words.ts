import type { CallEntry } from '../../../contract/transcript.ts'

/** Says in a few words who decided what. */
export function decisionWords({ decision, preview }: CallEntry): string {
  if (!decision) return 'Waiting for you'
  const { approved, by, reason, editedArgs, always } = decision
  if (by === 'cancel' && preview)
    return `Discarded: it ran in a fork, and ${reason === undefined ? 'you stopped the turn' : 'the turn ended before you decided'}`
  if (by === 'cancel')
    return reason === undefined ? 'Not run: you stopped the turn' : 'Not run: cancelled before you decided'
  if (by === 'imported') return 'Imported: not run here'
  if (by === 'policy') return approved ? 'Allowed by policy' : 'Denied by policy'
  if (by === 'session') return approved ? 'Approved by “Always allow” in this session' : 'Rejected in this session'
  if (by === 'review') return 'Ran in a fork'
  if (preview) return approved ? 'You kept what it did in a fork' : 'You discarded what it did in a fork'
  if (!approved) return 'You rejected it'
  if (always) return 'Always allowed in this session'
  return editedArgs ? 'You edited and approved it' : 'You approved it'
}
