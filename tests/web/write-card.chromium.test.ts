/** The card of a write shows what the write would do: to the file as it is when the person looks. */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'

const now = useFakePage()

function asking(...calls: Record<string, unknown>[]): (session: FakeSession) => void {
  return (session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask(
      't',
      calls.map((args, at) => ({ callId: `c${at}`, name: 'write_file', args }))
    )
  }
}

// Checked with the defence off: every write compared as a replacement → “The file has this content already”, and no content.
it('shows what is added to the end, and not the file as removed or as the same', async () => {
  now().fake.files.set('log.txt', Buffer.from('one\n'))
  const { me } = await now().arrive(asking({ path: 'log.txt', content: 'one\n', append: true }))
  await me.cards.getByText('Added to the end').waitFor()
  await me.cards.getByText('Add 4 B to the end of log.txt').waitFor()
  expect(await me.read(me.cards.getByRole('region', { name: 'Changes to log.txt' }))).toMatch(/^\+\s*one$/)
})

it('shows what it cannot compare as it was asked', async () => {
  now().fake.files.set('a.bin', Buffer.from('old\n'))
  const { me } = await now().arrive(
    asking({ path: 'a.bin', content: 'aGVsbG8=', encoding: 'base64' }, { path: 'a.bin', content: 'new', append: 'yes' })
  )
  await me.cards.getByText('Write 5 B to a.bin').waitFor()
  expect(await me.read(me.cards.getByRole('region', { name: 'Arguments' }))).toMatch(/aGVsbG8=[\s\S]*base64[\s\S]*new/)
  expect(await me.page.getByRole('region', { name: /^Changes/ }).count()).toBe(0)
})

it('compares again when a call has changed the file meanwhile', async () => {
  const { fake } = now()
  fake.files.set('a.txt', Buffer.from('old\n'))
  const { me, session } = await now().arrive(
    asking({ path: 'a.txt', content: 'first\n' }, { path: 'a.txt', content: 'second\n' })
  )
  const second = me.page.locator('[data-call="c1"]').getByRole('region', { name: 'Changes to a.txt' })
  await second.getByText('old').waitFor()
  await me.approve()
  await me.page.getByText('You approved it').first().waitFor()
  fake.files.set('a.txt', Buffer.from('first\n'))
  session.append('tool:started', { callId: 'c0' })
  session.append('tool:result', { callId: 'c0', isError: false, content: [] })
  await second.getByText('first').waitFor()
  expect(await me.read(second)).not.toContain('old')
  // Whatever happened while the connection was away is in the snapshot alone.
  fake.files.set('a.txt', Buffer.from('third\n'))
  fake.breakConnections()
  await second.getByText('third').waitFor()
})
