/** One dialog has the instructions and parameters of a session; a change is shown in the conversation. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()
const dialogOf = ({ page }: WorkspacePage) => page.getByRole('dialog', { name: 'Session settings' })

async function openDialog(me: WorkspacePage) {
  await me.button('Settings').press('Enter')
  await me.button('Session settings').press('Enter')
  const dialog = dialogOf(me)
  await dialog.getByRole('textbox', { name: 'Instructions for this session' }).waitFor()
  return dialog
}

it('saves instructions and parameters by keyboard, and shows that they changed', async () => {
  const { me, session } = await now().arrive()
  const dialog = await openDialog(me)
  await dialog.locator('textarea:focus').waitFor()
  await expect
    .poll(() => dialog.getByRole('textbox', { name: 'Instructions for all my sessions' }).inputValue())
    .toBe('Be brief.')
  await me.page.keyboard.type('Answer in German.')
  await dialog.getByLabel('Thinking').selectOption('High')
  await dialog.getByLabel('Temperature').fill('0.2')
  await dialog.getByLabel('Longest answer').fill('2000')
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  expect(session.transcript.settings).toEqual({
    effort: 'high',
    temperature: 0.2,
    maxOutputTokens: 2000,
    instructions: 'Answer in German.'
  })
  await me.page
    .getByText(
      'Session settings changed: thinking high, temperature 0.2, output 2000 tokens at most, new instructions.'
    )
    .waitFor()
  expect(now().offences).toEqual([])
})

it('keeps what was typed when Escape closes the dialog, and drops it on request', async () => {
  const { me, session } = await now().arrive()
  const dialog = await openDialog(me)
  const text = dialog.getByRole('textbox', { name: 'Instructions for this session' })
  await text.fill('Half a thought')
  await me.page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  await openDialog(me)
  await expect.poll(() => text.inputValue()).toBe('Half a thought')
  await dialog.getByRole('button', { name: 'Discard changes' }).click()
  await openDialog(me)
  await expect.poll(() => text.inputValue()).toBe('')
  expect(session.transcript.settings).toEqual({})
})
