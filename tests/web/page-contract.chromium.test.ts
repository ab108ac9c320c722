import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'

const now = useFakePage()
const arrive = (open?: (session: FakeSession) => void) => now().arrive(open)

it('asks for a whole snapshot when an event went missing, and then shows the true state', async () => {
  const { me, session } = await arrive()
  session.append('user:message', { turnId: 't', text: 'first' })
  await me.page.getByText('first').first().waitFor()
  session.append('agent:response', { turnId: 't', text: 'the lost one' }, { isLost: true })
  session.append('agent:response', { turnId: 't', text: 'the last one' })
  await me.page.getByText('the last one').waitFor()
  await expect.poll(() => me.page.getByText('the lost one').count()).toBe(1)
  await expect.poll(() => me.page.getByText('the last one').count()).toBe(1)
  expect(now().offences).toEqual([])
})

it('asks again when the snapshot is refused, and accepts none that is older than what it has', async () => {
  const { me, session } = await arrive()
  const old = structuredClone(session.snapshot())
  session.append('user:message', { turnId: 't', text: 'first' })
  await me.page.getByText('first').first().waitFor()
  session.live('session:snapshot', old)
  session.refuses = true
  session.append('agent:response', { turnId: 't', text: 'the lost one' }, { isLost: true })
  session.append('agent:response', { turnId: 't', text: 'the last one' })
  await expect.poll(() => session.refused).toEqual(['session:snapshot'])
  await expect.poll(() => me.page.getByRole('region', { name: 'Messages' }).getByText('first').count()).toBe(1)
  session.refuses = false
  await me.page.getByText('the lost one').waitFor()
  expect(now().offences).toEqual([])
})

it('follows an answer while it is written, but never pulls back a person who has scrolled up', async () => {
  const { me, session } = await arrive((opened) => {
    for (let turn = 0; turn < 60; turn++) opened.append('user:message', { turnId: `t${turn}`, text: `message ${turn}` })
  })
  const list = me.page.getByRole('region', { name: 'Messages' })
  const position = () => me.page.evaluate<number>(`document.querySelector('[aria-label="Messages"]').scrollTop`)
  const written: string[] = []
  const stream = (text: string) => {
    written.push(text)
    session.live('agent:delta', { turnId: 't59', text })
  }
  session.live('agent:thinking', { turnId: 't59' })
  for (let line = 0; line < 40; line++) stream(`Line ${line}\n\n`)
  await me.page.getByText('Line 39').waitFor()
  await list.hover()
  await me.page.mouse.wheel(0, -900)
  await me.button('Go to the end').waitFor()
  // The wheel turns the page over several frames.
  let before = Number.NaN
  const moved = async () => {
    const last = before
    before = await position()
    return before - last
  }
  await expect.poll(moved).toBe(0)
  for (let line = 40; line < 80; line++) stream(`Line ${line}\n\n`)
  session.append('agent:response', { turnId: 't59', text: `${written.join('')}And that is all.` })
  await me.page.evaluate('new Promise((done) => setTimeout(() => requestAnimationFrame(done), 200))')
  expect(Math.abs((await position()) - before)).toBeLessThan(2)
  await me.button('Go to the end').click()
  await me.page.getByText('And that is all.').waitFor()
  expect(now().offences).toEqual([])
})

// Checked: if text is shown as it is, they stay hidden.
it('shows hidden characters in names of tools and servers, and a tool that changed', async () => {
  const { me, session } = await arrive()
  session.append('user:message', { turnId: 't', text: 'go' })
  session.append('tool:approval_required', {
    ...{
      callId: 'c',
      turnId: 't',
      server: 'git\u200bhub',
      name: 'read\u202eelif',
      args: { 'k\u2066ey': '<b>x</b>\u0007\u{e0080}\u2065\u{e01ef}' }
    },
    ...{ definition: 'd', hash: 'h', queuePosition: 1, totalInQueue: 1 },
    definitionChange: { before: 'reads a file', after: 'deletes \u202dall' }
  })
  await me.cards.waitFor()
  const card = await me.read(me.cards)
  for (const shown of [
    'U+200B',
    'U+202E',
    'U+2066',
    'U+0007',
    'U+202D',
    'U+E0080',
    'U+2065',
    'U+E01EF',
    '<b>x</b>',
    'definition of this tool has changed'
  ]) {
    expect(card).toContain(shown)
  }
  expect(card).toContain('outside this session’s sandbox')
  expect(now().offences).toEqual([])
})

it('shows names to their end, and who owns them', async () => {
  const path = `${'long-name-'.repeat(14)}invoice.pdf.exe`
  now().fake.files.set(path, Buffer.from('x'))
  const { me } = await arrive((opened) => {
    for (const server of ['mine', 'theirs']) opened.append('tool:allowed', { server, name: 'read', definition: 'd' })
  })
  await me.button('Settings').click()
  await me.button('Ask again for read on theirs').waitFor()
  await expect
    .poll(() => me.read(me.page.getByRole('group', { name: 'Settings' })))
    .toMatch(/read on mine[\s\S]*read on theirs/)
  await me.page.keyboard.press('Escape')
  await me.button('Show the files').click()
  const row = me.button(/^long-name/)
  await expect.poll(() => row.getAttribute('title')).toBe(path)
  await row.click()
  await me.page.getByRole('dialog').getByRole('heading').waitFor()
  const hidden = 'document.querySelector("dialog h2").scrollWidth - document.querySelector("dialog h2").clientWidth'
  await expect.poll(() => me.page.evaluate(hidden)).toBe(0)
})

it('sets markdown safely: code with a copy button, links with their target, no image of another host', async () => {
  const { me, session } = await arrive()
  const text =
    '**bold** [docs](https://example.org/a) [bad](javascript:alert(1)) ![i](https://example.org/i.png) \u202eRLO\n\n```js\nlet a = "<b>"\n```\n\n<iframe src="https://example.org">'
  session.append('user:message', { turnId: 't', text: 'go' })
  session.append('agent:response', { turnId: 't', text })
  await me.page.locator('.hljs-keyword').waitFor()
  await me.button('Copy the code').waitFor()
  const link = me.page.getByRole('link', { name: 'docs' })
  expect(await link.getAttribute('rel')).toContain('noopener')
  await me.page.getByText('(example.org)').first().waitFor()
  await me.page.getByText('U+202E').waitFor()
  expect(await me.page.locator('iframe, .markdown img, a[href^="javascript"]').count()).toBe(0)
  expect(now().offences).toEqual([])
})

it('keeps a message that is sent during a turn, and sends it when its turn comes', async () => {
  const { me, session } = await arrive()
  await me.say('first')
  await me.page.getByText('Thinking…').waitFor()
  await me.say('second')
  await me.page.getByText('Queued: second').waitFor()
  const turnId = session.transcript.turnId ?? ''
  session.append('turn:end', { turnId, reason: 'done' })
  await me.page.getByText('Queued:').waitFor({ state: 'hidden' })
  await expect.poll(() => session.transcript.entries.length).toBe(2)
})

it('asks for the access token, or offers a new session, when it is not let in', async () => {
  const { fake, open } = now()
  fake.refuseWith = 'unauthorized'
  const me = await open()
  await me.page.getByLabel('Access token').waitFor()
  fake.refuseWith = 'forbidden'
  await me.page.goto('about:blank')
  await me.page.goto(`${fake.url}/#/s/someone-elses`)
  await me.page.getByRole('button', { name: 'Start your own session' }).waitFor()
  fake.refuseWith = null
  await me.page.getByRole('button', { name: 'Start your own session' }).click()
  await me.composer.waitFor()
  expect(now().offences).toEqual([])
})

it('switches the model only after saying that the history starts afresh', async () => {
  const { me, session } = await arrive((opened) => {
    opened.append('model:selected', { model: 'demo/demo' })
    opened.append('user:message', { turnId: 't', text: 'hello' })
    opened.append('turn:end', { turnId: 't', reason: 'done' })
  })
  await me.button(/^Choose a model/).click()
  await me.page.getByText('No GEMINI_API_KEY is set.').waitFor()
  await me.button('Refresh models').waitFor()
  await me.button('Large').click()
  await me.page.getByText(/does not know what was said so far/).waitFor()
  expect(session.transcript.model).toBe('demo/demo')
  await me.button('Switch').click()
  await me.page.getByText('Now with anthropic/large.').waitFor()
  await me.button(/^Choose a model, now Large anthropic/).waitFor()
  expect(now().offences).toEqual([])
})

// Checked: if waiting calls are not mentioned, switching the model cancels them silently.
it('says how many waiting calls a switch of the model cancels, as it stands when it is made, in every tab', async () => {
  const run = (callId: string) => ({ callId, name: 'execute_command', args: { command: 'make' } })
  const { me, session } = await arrive((opened) => {
    opened.append('model:selected', { model: 'demo/demo' })
    opened.append('user:message', { turnId: 't', text: 'hello' })
    opened.ask('t', [run('a'), run('b')])
  })
  const other = await me.page.context().newPage()
  await other.goto(me.page.url())
  await other.getByText('2 tool calls need your approval', { exact: true }).waitFor()
  const choose = me.button(/^Choose a model/)
  await choose.focus()
  await me.page.keyboard.press('Enter')
  await me.button('Large').focus()
  await me.page.keyboard.press('Enter')
  const dialog = me.page.getByRole('dialog', { name: 'Switch the model?' })
  await dialog.getByText('2 calls that need your approval will be cancelled').waitFor()
  session.ask('t', [run('c')])
  await dialog.getByText('3 calls that need your approval will be cancelled').waitFor()
  // One more that this page has not heard of: the server refuses, and the person looks again.
  session.append('tool:approval_required', { ...session.transcript.calls.c, callId: 'd' } as never, { isLost: true })
  await dialog.getByRole('button', { name: 'Switch' }).click()
  await me.page.getByText('4 calls wait for approval.').waitFor()
  expect(session.transcript.turnId).toBe('t')
  for (const tab of [me.page, other]) {
    await tab.reload()
    await tab.getByText('4 tool calls need your approval', { exact: true }).waitFor()
  }
  await choose.click()
  await me.button('Large').click()
  await dialog.getByText('4 calls that need your approval will be cancelled').waitFor()
  await dialog.getByRole('button', { name: 'Switch' }).click()
  await other.getByRole('status').getByText('This cancelled 4 calls that waited for approval.').first().waitFor()
  expect(session.transcript.turnId).toBeNull()
})

it('carries nothing over from one session to another, not even if their calls have the same ids', async () => {
  const { me, session } = await arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    opened.ask('t', [{ callId: 'call_0', name: 'execute_command', args: { command: 'make' } }])
  })
  await me.approve()
  session.append('tool:started', { callId: 'call_0' })
  session.live('tool:output', { callId: 'call_0', stream: 'stdout', text: 'of the first' })
  await me.outputs.getByText('of the first').waitFor()
  await me.button('New session').first().click()
  await me.approve()
  await me.page.getByText('You approved it').first().waitFor()
  expect(await me.page.getByText('of the first').count()).toBe(0)
  await me.page.goBack()
  await expect.poll(() => me.sessionId()).toBe(session.id)
  expect(now().offences).toEqual([])
})

it('shows the beginning of a very long output, and downloads all of it', async () => {
  const { me, session } = await arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    opened.ask('t', [{ callId: 'c1', name: 'execute_command', args: { command: 'yes' } }])
    opened.append('tool:approval_resolved', { callId: 'c1', approved: true, by: 'human' })
    opened.append('tool:started', { callId: 'c1' })
    const content = [{ type: 'text', text: 'the beginning' }]
    opened.append('tool:result', { callId: 'c1', isError: false, content, isShortened: true })
  })
  const [call] = Object.values(session.transcript.calls)
  const content = [{ type: 'text', text: 'the beginning and the end' }]
  if (call) now().fake.wholeCalls.set('c1', { ...call, result: { isError: false, at: 1, content } })
  const download = me.page.waitForEvent('download')
  await me.button('Download all of it').click()
  expect(await readFile(await (await download).path(), 'utf8')).toBe('the beginning and the end')
  expect(now().offences).toEqual([])
})
