import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'

const now = useFakePage()

it('opens a long conversation at its end, and loads what is older as it is scrolled up to, in its place', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.pageSize = 40
    for (let turn = 0; turn < 200; turn++)
      opened.append('user:message', { turnId: `t${turn}`, text: `message ${turn}.` })
  })
  const list = me.page.getByRole('region', { name: 'Messages' })
  await list.getByText('message 199.').waitFor()
  expect(await list.getByText('message 159.').count()).toBe(0)
  await list.hover()
  // All of it can be reached by scrolling alone.
  await expect
    .poll(async () => {
      await me.page.mouse.wheel(0, -2000)
      return list.getByText('message 0.', { exact: true }).count()
    })
    .toBe(1)
  await me.button('Show earlier messages').waitFor({ state: 'detached' })
  // What was loaded stays, and stays in order, when the connection comes back with a snapshot of the end.
  session.live('session:snapshot', session.snapshot())
  session.append('user:message', { turnId: 'last', text: 'the very last' })
  // It came from elsewhere: the reader stays, and goes there when they like.
  await me.button('New below').click()
  await list.getByText('the very last').waitFor()
  await list.hover()
  await expect
    .poll(async () => {
      await me.page.mouse.wheel(0, -2000)
      return list.getByText('message 0.', { exact: true }).count()
    })
    .toBe(1)
  expect(now().offences).toEqual([])
})

it('lists a page of sessions, more as the list is scrolled, and says how many there are', async () => {
  const { me } = await now().arrive()
  for (let n = 0; n < 130; n++)
    now()
      .fake.session(`s${n}`)
      .append('user:message', { turnId: 't', text: `talk ${n}.` })
  await me.page.reload()
  const list = me.page.getByRole('navigation', { name: 'Sessions' })
  await list.getByText('Show more of 131 sessions').waitFor()
  expect(await list.getByText('talk 100.').count()).toBe(0)
  await expect
    .poll(async () => {
      // Coming into sight is enough; it is gone when all are listed.
      await list
        .getByText('Show more of')
        .scrollIntoViewIfNeeded({ timeout: 1000 })
        .catch(() => {})
      return list.getByText('talk 129.').count()
    })
    .toBe(1)
  await list.getByText('Delete all sessions').click()
  await me.page.getByText('131 sessions, with their conversations').waitFor()
})
