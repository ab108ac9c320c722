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

it('puts a prompt into the message only for the arguments that it was shown for', async () => {
  const { fake } = now()
  fake.servers = [SERVER]
  fake.replies.set('/api/servers/notes', SERVER)
  const prompt = { name: 'trip', description: null, arguments: [{ name: 'city', description: null, isRequired: true }] }
  fake.replies.set('/api/servers/notes/offers', { resources: [], prompts: [prompt], problems: [] })
  const answer = (city: string) =>
    fake.replies.set('/api/servers/notes/prompt', {
      messages: [{ role: 'user', content: text(`A trip to ${city}.`) }]
    })
  const { me } = await now().arrive()
  await me.page.goto(`${fake.url}/#/servers/notes`)
  await me.button('List resources and prompts').click()
  await me.button('Open trip').click()
  const dialog = me.page.getByRole('dialog', { name: 'Prompt trip' })
  const put = dialog.getByRole('button', { name: 'Put it into the message' })
  const show = async (city: string) => {
    answer(city)
    await dialog.getByLabel('city').fill(city)
    await dialog.getByRole('button', { name: 'Show its messages' }).click()
    await dialog.getByText(`A trip to ${city}.`).waitFor()
  }
  await show('Rome')
  expect(await put.isEnabled()).toBe(true)
  await dialog.getByLabel('city').fill('Oslo')
  await expect.poll(() => put.isDisabled()).toBe(true)
  await dialog.getByText('You have changed the arguments since this was shown.').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await show('Oslo')
  await put.click()
  await expect.poll(() => me.composer.inputValue()).toBe('A trip to Oslo.')
})

it('asks for each variable of an address, and shows the address that comes of them', async () => {
  const { fake } = now()
  fake.servers = [SERVER]
  fake.replies.set('/api/servers/notes', SERVER)
  const template = (uri: string) => ({ uri, isTemplate: true, name: uri, description: 'A file.', mimeType: null })
  const resources = [template('repo://{owner}/files{/path*}{?ref}'), template('odd://{unclosed')]
  fake.replies.set('/api/servers/notes/offers', { resources, prompts: [], problems: [] })
  fake.replies.set('/api/servers/notes/resource', { content: text('The file.') })
  const { me } = await now().arrive()
  const asked: unknown[] = []
  me.page.on('request', (request) => request.url().endsWith('/resource') && asked.push(request.postDataJSON()))
  await me.page.goto(`${fake.url}/#/servers/notes`)
  await me.button('List resources and prompts').click()
  await me.button(/^Read repo/).click()
  const dialog = me.page.getByRole('dialog')
  expect(await dialog.getByRole('textbox').count()).toBe(3)
  await dialog.getByLabel('owner').fill('me & you')
  await dialog.getByLabel('path').fill('docs/a b.md')
  await dialog.getByText('repo://me%20%26%20you/files/docs/a%20b.md', { exact: true }).waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await dialog.getByLabel('ref').fill('main')
  await dialog.getByRole('button', { name: 'Read it' }).click()
  await dialog.getByText('The file.').waitFor()
  expect(asked).toEqual([{ uri: 'repo://me%20%26%20you/files/docs/a%20b.md?ref=main' }])
  await me.page.keyboard.press('Escape')
  // An address that is not a pattern stays one field.
  await me.button(/^Read odd/).click()
  expect(await dialog.getByRole('textbox').inputValue()).toBe('odd://{unclosed')
})
