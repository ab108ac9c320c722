/** The changes of a call are shown before it runs, and stay in the record. */
import { expect, it } from 'vitest'
import type { EventData } from '../../../contract/events.ts'
import { replacedText } from '../../../contract/replaced-text.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const TALL = { viewport: { width: 1200, height: 2600 } }
const OLD = Array.from({ length: 30 }, (_, at) => `const line${at + 1} = ${at + 1}`).join('\n')
const NEW = OLD.replace('const line15 = 15', 'const line15 = "fifteen"')

type Result = Partial<EventData<'tool:result'>>
function ran(session: FakeSession, callId: string, result: Result = {}): void {
  session.append('tool:approval_resolved', { callId, approved: true, by: 'human' })
  session.append('tool:started', { callId })
  const content = [{ type: 'text', text: 'Wrote it: 82 bytes written, 82 in all.' }]
  session.append('tool:result', { callId, isError: false, content, ...result })
}
function written(...calls: [args: Record<string, unknown>, result: Result][]): (session: FakeSession) => void {
  return (session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask(
      't',
      calls.map(([args], at) => ({ callId: `c${at}`, name: 'write_file', args }))
    )
    for (const [at, [, result]] of calls.entries()) ran(session, `c${at}`, result)
    session.append('turn:end', { turnId: 't', reason: 'done' })
  }
}

it('keeps what a write changed in the record, whatever the file is by now', async () => {
  now().fake.files.set('app.ts', Buffer.from('something else by now\n'))
  const { me } = await now().arrive(
    written(
      [{ path: 'app.ts', content: NEW }, { replaced: replacedText(OLD, NEW) }],
      [{ path: 'new.txt', content: 'hello\u202e\n' }, { replaced: { is: 'nothing' } }],
      [{ path: 'big.txt', content: 'x' }, { replaced: { is: 'large', bytes: 5_000_000 } }],
      [{ path: 'log.txt', content: 'one more', append: true }, {}],
      [{ path: 'old.txt', content: 'of an earlier version' }, {}],
      [{ path: 'bad.txt', content: 'x' }, { replaced: { is: 'text', head: 9, tail: 9, text: '' } }]
    ),
    TALL
  )
  const diff = (path: string) => me.page.getByRole('group', { name: `Changes to ${path}` })
  await expect.poll(() => me.read(diff('app.ts'))).toMatch(/−\s*const line15 = 15\s*15\s*\+\s*const line15 = "fifteen"/)
  expect(await me.read(diff('app.ts'))).not.toMatch(/something else|line1 =/)
  await expect.poll(() => me.read(diff('new.txt'))).toMatch(/\+\s*hello\s*U\+202E/)
  for (const note of [
    'New file',
    'too much changed to keep',
    'Added to the end',
    'what was there before was not recorded'
  ])
    await me.page.getByText(note).first().waitFor()
  await expect.poll(() => me.page.getByText('82 bytes written').count()).toBe(6)
  expect(await me.outputs.count()).toBe(0)
  // The word that changed, the colours, the lines around it, and the whole screen.
  await diff('app.ts').locator('.diff-mark', { hasText: 'fifteen' }).first().waitFor()
  await diff('app.ts').locator('.hljs-keyword').first().waitFor()
  await diff('app.ts').getByRole('button', { name: '11 unchanged lines' }).click()
  await diff('app.ts').getByText('line1 =').waitFor()
  await me.button('Show the changes to app.ts on the whole screen').click()
  const dialog = me.page.getByRole('dialog', { name: 'Changes to app.ts' })
  await dialog.getByText('line1 =').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

it('shows the edits of an MCP tool, what the server says about it, and the exact arguments', async () => {
  const claims = { description: 'Edits a\u200b file.\nSecond line.', readOnly: false, destructive: true }
  const edits = [
    { oldText: 'let a = 1', newText: 'let a = 2' },
    { oldText: 'b', newText: 'c\u2066' },
    { oldText: 'd', newText: '' }
  ]
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    opened.ask('t', [
      { callId: 'e', server: 'files', name: 'edit_file', args: { path: 'src/app.ts', edits, dryRun: false }, claims },
      {
        callId: 'r',
        server: 'files',
        name: 'search',
        args: { query: 'x' },
        claims: { description: 'Searches.', readOnly: true }
      }
    ])
  }, TALL)
  const card = me.page.locator('[data-call="e"]')
  await card.getByText('edit_file: src/app.ts, 3 edits').waitFor()
  await card.getByText('The server says: can destroy or overwrite').waitFor()
  await expect.poll(() => me.read(card)).toMatch(/Edits a\s*U\+200B\s*file/)
  const shown = () => me.read(card.getByRole('group', { name: 'Changes to src/app.ts' }))
  await expect.poll(shown).toMatch(/−\s*let a = 1\s*\+\s*let a = 2[\s\S]*−\s*b\s*\+\s*c\s*U\+2066[\s\S]*−\s*d/)
  await expect.poll(() => me.read(card.getByRole('group', { name: 'Arguments', exact: true }))).toContain('dryRun')
  await card.getByRole('button', { name: 'Exact arguments' }).click()
  const json = card.getByRole('group', { name: 'Exact arguments' })
  await expect.poll(() => me.read(json)).toMatch(/"oldText": "let a = 1"/)
  const reader = me.page.locator('[data-call="r"]')
  await reader.getByText('The server says: only reads').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  ran(session, 'e', { content: [{ type: 'text', text: 'done' }] })
  await expect
    .poll(() => me.read(me.page.getByRole('group', { name: 'Changes to src/app.ts' }).first()))
    .toContain('let a = 2')
  await me.outputs.getByText('done').waitFor()
  expect(now().offences).toEqual([])
})

it('loads a change that is too large for the conversation when a person wants to see it', async () => {
  const left = '[… left out here because it is long …]'
  const { me, session } = await now().arrive(
    written([
      { path: 'app.ts', content: left },
      { isShortened: true, replaced: { is: 'large', bytes: 9 } }
    ])
  )
  await me.page.getByText('82 bytes written').waitFor()
  expect(await me.page.getByText('left out here').count()).toBe(0)
  const call = session.transcript.calls.c0
  const whole = { ...call, args: { path: 'app.ts', content: NEW } }
  await me.page.route('**/calls/c0', (route) =>
    route.fulfill({
      json: { ...whole, result: { ...call?.result, isShortened: undefined, replaced: replacedText(OLD, NEW) } }
    })
  )
  await me.button('This change is large: show it').click()
  const diff = me.page.getByRole('group', { name: 'Changes to app.ts' })
  await expect.poll(() => me.read(diff)).toMatch(/−\s*const line15 = 15/)
})
