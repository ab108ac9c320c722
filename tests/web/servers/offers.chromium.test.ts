/** Prompts and resources of a server go into the next message. */
import { expect, it } from 'vitest'
import { pngOf } from '../../support/tiny-png.ts'
import { useFakePage } from '../fake-page.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const SERVER = {
  ...{ name: 'notes', kind: 'local', target: 'node notes.js', enabled: true, health: 'ok', isWaiting: false },
  ...{ state: 'running', tools: [], seenAt: Date.now(), startMs: 5, startedAt: Date.now(), lastError: null },
  ...{ calls: 0, processes: 1, log: null, hash: null, env: [], headers: [] },
  ...{ cwd: null, sandbox: null, approval: {}, readOnly: [], alternatives: [], description: null }
}
const text = (words: string) => [{ type: 'text', text: words }]

it('puts a prompt with its pictures into the message, with hidden characters named', async () => {
  const { fake } = now()
  fake.servers = [SERVER]
  fake.replies.set('/api/servers/notes', SERVER)
  const prompt = { name: 'review', description: 'Reviews code.', arguments: [] }
  fake.replies.set('/api/servers/notes/offers', { resources: [], prompts: [prompt], problems: [] })
  const image = { type: 'image', mimeType: 'image/png', data: pngOf(4, 4).toString('base64') }
  const messages = [
    { role: 'user', content: text('Review this\u202e code.') },
    { role: 'user', content: [image] }
  ]
  fake.replies.set('/api/servers/notes/prompt', { messages })
  const { me } = await now().arrive()
  const { page } = me
  await me.composer.fill('First of all:')
  await page.goto(`${fake.url}/#/servers/notes`)
  await me.button('List resources and prompts').click()
  await me.button('Open review').click()
  const dialog = page.getByRole('dialog', { name: 'Prompt review' })
  await dialog.getByText('Review this').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Put it into the message' }).click()
  await expect.poll(() => me.composer.inputValue()).toBe('First of all:\n\nReview this⟨U+202E⟩ code.')
  await page.getByText('review 1.png').waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('composer')
  expect(now().offences).toEqual([])
})
