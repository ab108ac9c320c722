/** Programs of outside clients, as the inbox shows and ends them. */
import { expect, it } from 'vitest'
import type { ClientRun } from '../../../contract/rest.ts'
import { useFakePage } from '../fake-page.ts'
import { inboxCard } from '../inbox-card.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const CODE =
  "const rows = await tools.crm.search({ query: 'ada' })\nfor (const row of rows) await tools.mail.send({ to: row.mail })"

function run(runId: string, more: Partial<ClientRun> = {}): ClientRun {
  const startedAt = Date.now() - 60_000
  const run = {
    runId,
    door: 'stdio',
    status: 'running',
    startedAt,
    expiresAt: startedAt + 86_400_000,
    calls: 1
  } as const
  return { ...run, head: CODE, ...more }
}
async function openInbox() {
  const me = await now().open()
  await me
    .button(/^(Inbox|Waiting)/)
    .first()
    .click()
  const programs = me.page.locator('.client-program')
  await programs.first().waitFor()
  return { me, programs, asked: me.page.getByRole('dialog', { name: 'Cancel this program?' }) }
}

it('shows waiting and running programs with their client, reason, calls and first lines', async () => {
  const reason = '1 call waits for approval.'
  now().fake.runs = [run('a', { client: 'evil\u202e/1', status: 'waiting', reason, calls: 12 }), run('b')]
  now().fake.approvals = [{ ...inboxCard('x', { to: 'ada@example.test' }) }]
  const { me, programs } = await openInbox()
  const text = async (at: number) => ((await programs.nth(at).textContent()) ?? '').replace(/\s+/g, ' ')
  for (const part of ['evil', 'Waiting', reason, '12 calls so far', 'left to decide', 'tools.crm.search'])
    expect(await text(0)).toContain(part)
  expect(await text(0)).not.toContain('\u202e')
  for (const part of ['Program of a client without a name', 'Running', '1 call so far'])
    expect(await text(1)).toContain(part)
  expect(await text(1)).not.toContain('left to decide')
  expect(await seriousFaults(me.page)).toEqual([])
  now().fake.runs = []
  await expect.poll(() => programs.count()).toBe(0)
})

it('cancels a program only after asking once', async () => {
  now().fake.runs = [run('a', { client: 'one/1' }), run('b', { client: 'two/2' })]
  const { me, programs, asked } = await openInbox()
  const cancel = programs.nth(1).getByRole('button', { name: 'Cancel the program…' })
  await cancel.click()
  expect(await asked.textContent()).toContain('“two/2”')
  await asked.getByRole('button', { name: 'Let it go on' }).click()
  await asked.waitFor({ state: 'hidden' })
  expect(now().fake.runs).toHaveLength(2)
  await cancel.click()
  await asked.getByRole('button', { name: 'Cancel the program' }).and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => now().fake.runs.map(({ runId }) => runId)).toEqual(['a'])
  await expect.poll(() => programs.count()).toBe(1)
  expect(await programs.textContent()).toContain('one/1')
})

it('says why a program could not be cancelled, and still shows it', async () => {
  now().fake.runs = [run('a')]
  const { me, programs, asked } = await openInbox()
  const gone = { error: { code: 'unavailable', message: 'The store does not answer.' } }
  await me.page.route('**/api/runs/*/cancel', (route) => route.fulfill({ status: 503, json: gone }))
  await programs.getByRole('button', { name: 'Cancel the program…' }).click()
  await asked.getByRole('button', { name: 'Cancel the program' }).and(me.page.locator('[aria-disabled=false]')).click()
  await me.page.getByText('The store does not answer.').waitFor()
  await programs.getByRole('button', { name: 'Cancel the program…' }).waitFor()
})
