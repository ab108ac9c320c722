/** The keys of model providers: an administrator enters a second one, replaces one, and removes one. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()

it('takes a second key, replaces one that does not work, and removes one', async () => {
  const { fake } = now()
  fake.providers = [
    { id: 'anthropic', label: 'Anthropic', source: 'settings', ok: true, reason: null },
    { id: 'gemini', label: 'Gemini', source: 'page', ok: false, reason: 'Gemini rejected the key (401).' },
    { id: 'openai', label: 'OpenAI', source: null, ok: false, reason: 'No key is set.' }
  ]
  const { me } = await now().arrive()
  await me.button(/^Choose a model/).click()
  await me.button('Model keys…').click()
  const dialog = me.page.getByRole('dialog', { name: 'Model keys' })
  const of = (label: string) => dialog.getByRole('listitem').filter({ hasText: label })
  await of('Anthropic').getByText('Works').waitFor()
  await of('Gemini').getByText('Gemini rejected the key (401).').waitFor()
  await of('OpenAI').getByText('No key').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  const form = dialog.getByRole('form', { name: 'Key of a model provider' })
  for (const label of ['Gemini', 'OpenAI']) {
    await form.getByLabel('Provider').selectOption({ label })
    await form.getByLabel('API key').fill('a-key-that-works')
    await form.getByLabel('API key').press('Enter')
    await of(label).getByText('Works').waitFor()
  }
  expect(await of('Anthropic').getByRole('button').count()).toBe(0)
  await of('Gemini').getByRole('button', { name: 'Remove the key of Gemini' }).click()
  const question = me.page.getByRole('dialog', { name: 'Remove the key of Gemini?' })
  await question.getByRole('button', { name: 'Remove' }).and(me.page.locator('[aria-disabled=false]')).click()
  await of('Gemini').getByText('No key').waitFor()
  expect(fake.providers.map(({ source }) => source)).toEqual(['settings', null, 'page'])
  expect(now().offences).toEqual([])
})
