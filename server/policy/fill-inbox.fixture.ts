import { expect } from 'vitest'
import type { ApprovalInbox } from './approval-inbox.ts'

const card = { hash: 'h', server: 's', tool: 't', args: { a: 1 }, asker: { door: 'stdio' } }

/** Seen before: all of them passed the check, and then each added its card. */
export async function fillInbox(inboxes: [ApprovalInbox, ApprovalInbox]): Promise<void> {
  const leave = new AbortController()
  let isFull = 0
  let isAsking = 130
  const ask = async (at: number) => {
    const error = await inboxes[at % 2 === 0 ? 0 : 1]
      .ask({ ...card, owner: String(at) }, 600_000, leave.signal)
      .catch((reason) => reason)
    if (error.code === 'approvals_full') isFull++
    isAsking--
  }
  const asked = Array.from({ length: 130 }, (_, at) => ask(at))
  await expect.poll(() => isFull).toBe(30)
  await expect.poll(async () => (await inboxes[0].open()).length).toBe(100)
  leave.abort()
  await Promise.all(asked)
  expect({ isFull, isAsking }).toEqual({ isFull: 30, isAsking: 0 })
  const again = new AbortController()
  const waiting = inboxes[1].ask(card, 600_000, again.signal)
  await expect.poll(async () => (await inboxes[0].open()).length).toBe(1)
  again.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'cancelled' })
}
