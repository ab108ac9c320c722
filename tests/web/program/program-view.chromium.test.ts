/** A program of the model in the page: its text, its calls, the cards of those that wait, and what it saved. */

import { expect, it } from 'vitest'
import { PROGRAMS } from '../../../contract/own-sources.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'

const now = useFakePage()
const CODE = `const { ids } = await tools.crm.list()
await Promise.all(ids.map((id) => tools.crm.read({ id })))`

function call(session: FakeSession, n: number, more: Record<string, unknown> = {}): void {
  session.append('tool:approval_required', {
    ...{ callId: `inner${n}`, turnId: 't', server: 'crm', name: 'read', args: { id: `id-${n}` }, definition: 'fake' },
    ...{ hash: `hash-${n}`, queuePosition: 1, totalInQueue: 1 },
    program: {
      ...{ callId: 'prog', n, line: 2, source: 'await Promise.all(…)', isRead: true },
      sources: [{ path: 'id', server: 'crm', tool: 'list', n: 1 }]
    },
    ...more
  })
}

function program(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'go' })
  session.append('tool:approval_required', {
    ...{ callId: 'prog', turnId: 't', server: PROGRAMS, name: 'run_code', args: { code: CODE }, definition: 'fake' },
    ...{ hash: 'hash-prog', queuePosition: 1, totalInQueue: 1 }
  })
  session.append('tool:approval_resolved', { callId: 'prog', approved: true, by: 'policy' })
  session.append('tool:started', { callId: 'prog' })
  call(session, 1, { name: 'list', args: {} })
  session.append('tool:approval_resolved', { callId: 'inner1', approved: true, by: 'policy' })
  session.append('tool:started', { callId: 'inner1' })
  session.append('tool:result', { callId: 'inner1', isError: false, content: [{ type: 'text', text: 'two ids' }] })
  call(session, 2)
  call(session, 3)
}

it('shows the program with its calls, and decides about those that were made together at once', async () => {
  const { me, session } = await now().arrive(program)
  const view = me.page.locator('section.program')
  await view.getByText('The program waits for 2 calls.').waitFor()
  await view.getByText('The program, 2 lines').click()
  await view.getByText('const { ids } = await tools.crm.list()').waitFor()
  await view.getByText('Call 1, line 2').waitFor()
  const row = view.getByRole('list', { name: 'Calls of the program' }).getByRole('button', { name: /list/ })
  expect((await row.textContent())?.trim()).toBe('crm.list')
  expect(await view.locator('.approval-card').count()).toBe(2)
  await view.locator('[data-call="inner2"]').getByText('contains data from').waitFor()
  await me.button(/^Approve all 2 of this program/).click()
  await me.approveListed()
  await view.locator('.approval-card').first().waitFor({ state: 'detached' })
  const decisions = Object.values(session.transcript.calls).map(({ callId, decision }) => [callId, decision?.approved])
  expect(decisions).toEqual([
    ['prog', true],
    ['inner1', true],
    ['inner2', true],
    ['inner3', true]
  ])
  for (const n of [2, 3]) session.append('tool:result', { callId: `inner${n}`, isError: false, content: [] })
  session.append('tool:result', {
    ...{ callId: 'prog', isError: false, program: { savedTokens: 1234 } },
    content: [{ type: 'text', text: '{"value":"all read","calls":3}' }]
  })
  await view.getByText('The model did not read about 1,234 tokens of results.').waitFor()
  await view.getByText('all read').waitFor()
  expect(now().offences).toEqual([])
})

it('offers to approve all reads, shows those that wait first, and says so to the server', async () => {
  const { me, session } = await now().arrive(program)
  const sent: Record<string, unknown>[] = []
  const handle = session.handle.bind(session)
  session.handle = (command, input, reply) => {
    if (command === 'tool:approval') sent.push(input)
    handle(command, input, reply)
  }
  const card = me.page.locator('[data-call="inner2"]')
  const button = card.getByRole('button', { name: 'Approve all reads of this program' })
  await button.and(me.page.locator('[aria-disabled=false]')).click()
  const list = me.page.getByRole('list', { name: 'Calls to approve' })
  await expect.poll(() => list.getByRole('listitem').count()).toBe(2)
  await me.page.getByText('Later reads of this program').waitFor()
  expect(sent).toEqual([])
  await me.approveListed()
  await expect.poll(() => sent).toMatchObject([{ callId: 'inner2', approved: true, reads: true, hash: 'hash-2' }])
})
