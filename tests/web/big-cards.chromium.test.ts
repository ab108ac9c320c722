/** Cards that are made to be too large for the page, or for the person who reads them. */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { inboxCard } from './inbox-card.ts'

const now = useFakePage()
const asking = (server: string, name: string, args: Record<string, unknown>) => (session: FakeSession) => {
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', [{ callId: 'c', server, name, args }])
}
const times = <T>(number: number, item: T): T[] => Array.from({ length: number }, () => item)

// Checked: with an element for each hidden character or value, the page stands still for minutes.
it.each([
  ['hidden characters', 'workspace', 'execute_command', { command: `echo ${'\u200b'.repeat(100_000)} end` }],
  ['values in values', 'other', 'draw', { cube: times(60, times(60, times(60, 1))) }]
])('stays usable with a card full of %s', async (_what, server, name, args) => {
  const { me, session } = await now().arrive(asking(server, name, args))
  await me.button(/^Reject…/).click()
  await me.button('Reject this call').click()
  await expect.poll(() => session.transcript.calls.c?.decision?.approved).toBe(false)
  expect(now().offences).toEqual([])
})

// Seen before: all of it was laid out at once.
it('shows the beginning of very long arguments, says so, and shows all of them on request', async () => {
  const line = `${'x'.repeat(400_000)}THE END`
  const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key${at}`, at]))
  now().fake.approvals = [inboxCard('a', { line }), inboxCard('b', { ...keys })]
  const { me } = await now().arrive(asking('workspace', 'execute_command', { command: line }))
  const sizes = (selector: string) =>
    me.page.evaluate(`[...document.querySelectorAll('${selector}')].map((box) => box.textContent.length < 60_000)`)
  const command = me.page.locator('[aria-label=Command]')
  await command.getByText('the first 50,000 of 400,007 characters').waitFor()
  expect(await sizes('[aria-label=Command]')).toEqual([true])
  await command.getByRole('button', { name: 'Show all' }).click()
  await command.getByText('THE END').waitFor()
  const focused = () => me.page.evaluate('document.activeElement.textContent.trim().slice(0, 60)')
  await expect.poll(focused).toBe('All 400,007 characters are shown.')
  await me.button('Waiting for you: 3').click()
  await expect.poll(() => sizes('.inbox-card [aria-label=Arguments]')).toEqual([true, true])
  expect(now().offences).toEqual([])
})

// Checked: without that text, nothing says that the command continues.
it('says that a command continues below, as long as it does', async () => {
  const { me } = await now().arrive(
    asking('workspace', 'execute_command', { command: `ls${'\n'.repeat(60)}rm -rf everything` })
  )
  const more = me.button('More below')
  await more.waitFor()
  for (let press = 0; (await more.count()) > 0; press++) {
    expect(press).toBeLessThan(20)
    // The button may disappear between the check and the click.
    await more.click({ timeout: 2000 }).catch(() => {})
    await me.page.evaluate('new Promise(requestAnimationFrame)')
  }
  const hidden =
    '[...document.querySelectorAll("[aria-label=Command]")].map((box) => box.scrollHeight - box.scrollTop - box.clientHeight)'
  await expect.poll(() => me.page.evaluate(hidden)).toEqual([0])
  expect(now().offences).toEqual([])
})

// Seen before: both looked the same as two commands on two lines.
it('shows long blanks and the ends of lines, in commands and in arguments', async () => {
  const { me } = await now().arrive((session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    const texts = { blank: `rm -rf build${' '.repeat(300)}src`, line: 'rm -rf build\nsrc' }
    const calls = Object.entries(texts).flatMap(([callId, command]) => [
      { callId, name: 'execute_command', args: { command } },
      { callId: `${callId}-other`, server: 'other', name: 'run', args: { command } }
    ])
    session.ask('t', calls)
  })
  const shown = (callId: string) => me.page.locator(`[data-call="${callId}"] [role=group]`)
  for (const callId of ['blank', 'blank-other']) {
    await shown(callId).getByText('300 spaces', { exact: true }).waitFor()
    expect(await shown(callId).locator('.line-end').count()).toBe(0)
  }
  for (const callId of ['line', 'line-other'])
    await expect.poll(() => shown(callId).locator('.line-end').count()).toBe(1)
  expect(now().offences).toEqual([])
})

it('shows texts differently from numbers, JSON literals, empty texts and blanks', async () => {
  const json = JSON.stringify({ a: times(100, 1) })
  const values = { five: 5, text5: '5', none: null, textNone: 'null', empty: '', blank: '  ', plain: 'ok', json }
  const { me } = await now().arrive(asking('other', 'draw', values))
  await me.cards.waitFor()
  const shown = await me.cards.getByRole('group', { name: 'Arguments' }).locator('dd').allInnerTexts()
  expect(shown).toEqual(['5', '"5"', 'null', '"null"', '""', '"  "', 'ok', expect.stringMatching(/^text\s*\{"a":/)])
})

// Checked: if the first letter sets the direction, the second name stands before the first, and ">" looks like "<".
it('shows right-to-left names in the order of the command', async () => {
  const { me } = await now().arrive(asking('workspace', 'execute_command', { command: 'אאא > בבב.sh' }))
  await me.cards.waitFor()
  const places = await me.page.evaluate(`['אאא', '>', 'בבב', '.sh'].map((part) => {
    const nodes = document.createTreeWalker(document.querySelector('[aria-label=Command]'), NodeFilter.SHOW_TEXT)
    while (!nodes.nextNode()?.data.includes(part)) {}
    const range = document.createRange()
    const at = nodes.currentNode.data.indexOf(part)
    range.setStart(nodes.currentNode, at)
    range.setEnd(nodes.currentNode, at + part.length)
    return range.getBoundingClientRect().left
  })`)
  expect(places).toEqual((places as number[]).toSorted((a, b) => a - b))
})

it('shows a limited number of calls of a full inbox, and says how many more wait', async () => {
  const args = { list: times(30, { a: 1, b: 2 }) }
  now().fake.approvals = Array.from({ length: 100 }, (_, at) => inboxCard(`c${at}`, args))
  const { me } = await now().arrive()
  await me.button('Waiting for you: 100').click()
  await me.page.getByText('80 more calls need your approval after these').waitFor()
  now().fake.approvals = now().fake.approvals.slice(90)
  await expect.poll(() => me.page.locator('.inbox-card').count()).toBe(10)
})
