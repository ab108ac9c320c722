/** Switching the model asks what the new one gets of the conversation. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()
const talked = (session: FakeSession) => {
  session.append('model:selected', { model: 'demo/demo' })
  session.append('user:message', { turnId: 't', text: 'Hello' })
  session.append('agent:response', { turnId: 't', text: 'Hi.' })
  session.append('turn:end', { turnId: 't', reason: 'done' })
}
const dialogOf = ({ page }: WorkspacePage) => page.getByRole('dialog', { name: 'Switch the model?' })

async function chooseLarge(me: WorkspacePage) {
  await me.button(/^Choose a model/).click()
  await me.button('Large').click()
  await dialogOf(me).waitFor()
}

it('keeps the conversation if the person chooses that, by keyboard', async () => {
  const { me, session } = await now().arrive(talked)
  await chooseLarge(me)
  const dialog = dialogOf(me)
  expect(await dialog.getByRole('radio', { name: 'Start fresh' }).isChecked()).toBe(true)
  await dialog.getByRole('radio', { name: 'Start fresh' }).focus()
  await me.page.keyboard.press('ArrowDown')
  expect(await dialog.getByRole('radio', { name: 'Keep the conversation' }).isChecked()).toBe(true)
  expect(await seriousFaults(me.page)).toEqual([])
  await dialog.getByRole('button', { name: 'Switch' }).and(me.page.locator('[aria-disabled=false]')).press('Enter')
  await me.page.getByText('Now with anthropic/large, which continues the conversation.').waitFor()
  expect(session.transcript.entries.at(-1)).toMatchObject({ kind: 'model-switch', model: 'anthropic/large' })
  // The answer before the switch can be written anew by the new model.
  await me.button('Regenerate').waitFor()
  expect(now().offences).toEqual([])
})

it('starts fresh unless told otherwise, and still says which approvals are cancelled', async () => {
  const { me, session } = await now().arrive((opened) => {
    talked(opened)
    opened.append('user:message', { turnId: 'u', text: 'go' })
    opened.ask('u', [{ callId: 'a', name: 'execute_command', args: { command: 'make' } }])
  })
  await me.cards.first().waitFor()
  await chooseLarge(me)
  await dialogOf(me).getByText('1 call that needs your approval will be cancelled').waitFor()
  await dialogOf(me).getByRole('button', { name: 'Switch' }).and(me.page.locator('[aria-disabled=false]')).click()
  await me.page.getByText('A fresh history starts here').waitFor()
  expect(session.transcript.entries.at(-1)).toMatchObject({ kind: 'fresh-start', model: 'anthropic/large' })
})

it('asks nothing in an empty chat, however often the person chooses', async () => {
  const { me, session } = await now().arrive((opened) => opened.append('model:selected', { model: 'demo/demo' }))
  const choose = async (name: string, shown: RegExp) => {
    await me.button(/^Choose a model/).click()
    await me.page
      .getByRole('group', { name: /^Choose a model/ })
      .getByRole('button', { name })
      .click()
    await me.button(shown).waitFor()
  }
  await choose('Large', /^Choose a model, now Large/)
  await choose('Demo', /^Choose a model, now Demo/)
  expect(await dialogOf(me).count()).toBe(0)
  expect(session.transcript.entries.map(({ kind }) => kind)).toEqual(['fresh-start', 'fresh-start'])
})

it('begins new sessions with the model that was chosen last, as long as it is there', async () => {
  const { me } = await now().arrive(talked)
  await chooseLarge(me)
  await dialogOf(me).getByRole('button', { name: 'Switch' }).and(me.page.locator('[aria-disabled=false]')).click()
  await me.button(/^Choose a model, now Large/).waitFor()
  const first = me.sessionId()
  await me.page.getByRole('navigation', { name: 'Sessions' }).getByRole('button', { name: 'New session' }).click()
  await expect.poll(() => me.sessionId()).not.toBe(first)
  await me.button(/^Choose a model, now Large/).waitFor()
  await me.page.reload()
  await me.button(/^Choose a model/).waitFor()
  expect(await me.page.evaluate(`localStorage.getItem('mcp-orchestrator:model')`)).toBe('anthropic/large')
})

it('finds a model by its name in a long list, and chooses the first with Enter', async () => {
  const { fake } = now()
  fake.moreModels = Array.from({ length: 40 }, (_, at) => ({
    ...{ id: `anthropic/model-${at}`, name: `Model ${at}`, provider: 'anthropic', contextTokens: 200_000 }
  }))
  const { me } = await now().arrive()
  await me.button(/^Choose a model/).click()
  const menu = me.page.getByRole('group', { name: /^Choose a model/ })
  await menu.getByText('200K').first().waitFor()
  const filter = menu.getByRole('searchbox', { name: 'Filter the models' })
  // Opened with the mouse, and typing finds at once.
  await filter.and(me.page.locator(':focus')).waitFor()
  await me.page.keyboard.type('anthropic 37')
  await expect.poll(() => menu.getByRole('button', { name: /^Model \d/ }).count()).toBe(1)
  expect(await seriousFaults(me.page)).toEqual([])
  await filter.press('Enter')
  await me.button(/^Choose a model, now Model 37/).waitFor()
  expect(now().offences).toEqual([])
})
