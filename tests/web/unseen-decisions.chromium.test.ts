/** Nobody decides a card with an answer that was meant for another card, or for no card. */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { inboxCard } from './inbox-card.ts'
import { seriousFaults } from './serious-faults.ts'

const now = useFakePage()
const run = (callId: string) => ({ callId, name: 'execute_command', args: { command: `echo ${callId}` } })

function asking(...callIds: string[]): (session: FakeSession) => void {
  return (session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask('t', callIds.map(run))
  }
}
const decided = ({ transcript }: FakeSession) =>
  Object.values(transcript.calls).flatMap(({ callId, decision }) => (decision?.approved ? [callId] : []))
/** The click comes as soon as the next card stands where the one before it stood. */
const clickWhenGone = (gone: string, button: string) => `new MutationObserver((_, observer) => {
  if (document.querySelector('${gone}')) return
  observer.disconnect()
  document.querySelector('${button}').click()
}).observe(document.body, { childList: true, subtree: true })`
const armed = '.approval-card:focus button[aria-disabled=false]'

// Checked: if cards accept clicks at once, the second card is decided.
it('ignores the second click of a double-click on the next card', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  await expect.poll(() => me.page.locator('.btn-primary[aria-disabled=false]').count()).toBe(2)
  await me.page.evaluate(clickWhenGone('[data-call="a"]', '[data-call="b"] .btn-primary'))
  await me.approve()
  await me.page.getByText('You approved it').first().waitFor()
  await me.page.locator('[data-call="b"] .btn-primary[aria-disabled=false]').waitFor()
  expect(decided(session)).toEqual(['a'])
  await me.approve()
  await expect.poll(() => decided(session)).toEqual(['a', 'b'])
  expect(now().offences).toEqual([])
})

it('takes a key that is held down as one answer', async () => {
  const { me, session } = await now().arrive(asking('a', 'b', 'c'))
  await me.page.keyboard.press('Alt+p')
  await me.approveByKeyboard()
  await me.page.locator('[data-call="b"]:focus').waitFor()
  await me.page.locator(armed).first().waitFor()
  await me.page.keyboard.down('Enter')
  await me.page.keyboard.down('Enter')
  await me.page.keyboard.up('Enter')
  await me.page.keyboard.press('r')
  await me.page.getByRole('textbox', { name: /Reason/ }).waitFor()
  expect(decided(session)).toEqual(['a'])
})

it('takes what is typed after a click as a message', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  await me.approve()
  await me.page.getByText('You approved it').first().waitFor()
  await me
    .button(/^Approve$/)
    .and(me.page.locator('[aria-disabled=false]'))
    .waitFor()
  await me.page.keyboard.type('also lint it')
  await expect.poll(() => me.composer.inputValue()).toBe('also lint it')
  expect(decided(session)).toEqual(['a'])
})

it('takes what is typed after a reason as a message, if the reason was opened by mouse', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  await me.button('Reject…').first().click()
  await me.page.keyboard.type('not this one')
  await me.enterReason()
  await me.page.getByText('Reason: not this one').waitFor()
  await me.page.locator('[data-call="b"] .btn-primary[aria-disabled=false]').waitFor()
  await me.page.keyboard.type('also lint it')
  await expect.poll(() => me.composer.inputValue()).toBe('also lint it')
  expect(decided(session)).toEqual([])
})

it('does not take the second click on an edit as approval of the next edit', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  for (const callId of ['a', 'b']) {
    await me.page.locator(`[data-call="${callId}"]`).getByRole('button', { name: /^Edit/ }).click()
  }
  await me.page.evaluate(clickWhenGone('[data-call="a"]', '[data-call="b"] .btn-primary'))
  await me.button('Approve with changes').first().click()
  await me.page.getByText('You edited and approved it').first().waitFor()
  await me.page.locator('[data-call="b"] .btn-primary[aria-disabled=false]').waitFor()
  expect(decided(session)).toEqual(['a'])
})

it('opens no keyboard on a phone after a tap', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'), { hasTouch: true, isMobile: true })
  for (const callId of ['a', 'b']) {
    await me.page.locator(`[data-call="${callId}"] .btn-primary[aria-disabled=false]`).tap()
    await expect.poll(() => decided(session)).toContain(callId)
    await me.page.locator(`[data-call="${callId}"]`).waitFor({ state: 'hidden' })
  }
  expect(await me.page.evaluate('document.activeElement.id')).not.toBe('composer')
})

it('leaves the keyboard where it is when another card is decided elsewhere', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  const reject = me.page.locator('[data-call="b"]').getByRole('button', { name: /^Reject/ })
  await reject.focus()
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
  await me.page.getByText('You approved it').first().waitFor()
  await me.page.locator('[data-call="b"] .btn-danger[aria-disabled=false]:focus').waitFor()
})

// Checked: if cards of the inbox stay ready for clicks, the second card is decided.
it('does not take a click in the inbox as an answer to the card that has just moved up', async () => {
  now().fake.approvals = [inboxCard('a'), inboxCard('b')]
  const { me } = await now().arrive()
  await me.button('Waiting for you: 2').click()
  await expect.poll(() => me.page.locator('.inbox-card .btn-primary[aria-disabled=false]').count()).toBe(2)
  await me.page.evaluate(clickWhenGone('[data-card="a"]', '[data-card="b"] .btn-primary'))
  now().fake.approvals = [inboxCard('b')]
  await me.page.locator('[data-card="a"]').waitFor({ state: 'hidden' })
  await me.page.locator('[data-card="b"] .btn-primary[aria-disabled=false]').waitFor()
  expect(now().fake.answered).toEqual([])
  await me.page.locator('[data-card="b"] .btn-primary').click()
  await expect.poll(() => now().fake.answered).toEqual(['b'])
})

// Checked: if everything pending is approved, the changed tool is accepted.
it('"Approve all" leaves out calls that are being edited or rejected, and tools that changed', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    const changed = { ...run('changed'), definitionChange: { before: 'reads', after: 'deletes' } }
    opened.ask('t', [run('edited'), run('rejected'), changed, run('c'), run('d')])
  })
  const card = (callId: string) => me.page.locator(`[data-call="${callId}"]`)
  await me.button('Approve the other 4').waitFor()
  await card('edited').getByRole('button', { name: /^Edit/ }).click()
  await card('edited').getByRole('textbox', { name: 'command' }).fill('echo safe')
  await card('rejected')
    .getByRole('button', { name: /^Reject/ })
    .click()
  await card('rejected').getByRole('textbox').fill('not this')
  await me.button('Approve the other 2').click()
  await me.approveListed()
  await expect.poll(() => decided(session)).toEqual(['c', 'd'])
  await me
    .button(/^Approve (all|the other)/)
    .first()
    .waitFor({ state: 'detached' })
  await expect.poll(() => card('edited').getByRole('textbox', { name: 'command' }).inputValue()).toBe('echo safe')
  await expect.poll(() => card('rejected').getByRole('textbox').inputValue()).toBe('not this')
})

it('approves all a moment after they came, and not where another button has just been', async () => {
  const { me, session } = await now().arrive()
  await me.page.evaluate(`new MutationObserver((_, observer) => {
    const all = [...document.querySelectorAll('button')].find(({ innerText }) => /Approve all/.test(innerText))
    if (!all) return
    observer.disconnect()
    all.click()
  }).observe(document.body, { childList: true, subtree: true })`)
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', [run('a')])
  const review = me.button(/^Show$/)
  // After that, nothing moves any more.
  await me.page.locator('[data-call="a"] [data-approve][aria-disabled=false]').waitFor()
  const before = await review.boundingBox()
  session.ask('t', [run('b')])
  await me.button('Approve all 2').and(me.page.locator('[aria-disabled=false]')).waitFor()
  expect(decided(session)).toEqual([])
  await expect.poll(() => review.boundingBox()).toEqual(before)
  await me.button('Approve all 2').click()
  await me.approveListed()
  await expect.poll(() => decided(session)).toEqual(['a', 'b'])
})

// Checked: if everything pending at the click is approved, the late call runs too.
it('says in the list that a second write to the same file is asked about again', async () => {
  const target = { path: '/workspace/a.txt', is: 'new' as const }
  const write = (callId: string) => ({ callId, name: 'write_file', args: { path: 'a.txt', content: callId }, target })
  const { me } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    opened.ask('t', [write('one'), write('two')])
  })
  await me.button('Approve all 2').click()
  const list = me.page.getByRole('dialog')
  await list.locator('[data-listed=two]').getByText('writes to the same file first').waitFor()
  expect(await list.locator('[data-listed=one]').getByText('writes to the same file first').count()).toBe(0)
})

it('lists every call in full before all are approved, and approves those and no others', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    const long = { ...run('long'), args: { command: `ls${'\n'.repeat(80)}rm -rf hidden` } }
    opened.ask('t', [run('a'), long, run('gone')])
  })
  await me.button('Approve all 3').click()
  const list = me.page.getByRole('dialog')
  await list.locator('[data-listed="gone"]').waitFor()
  const text = await me.read(list.locator('[data-listed]'))
  for (const shown of ['echo a', 'rm -rf hidden', 'echo gone', '3 of 3']) expect(text).toContain(shown)
  const approve = me.button(/^Approve these/)
  expect(await approve.getAttribute('aria-disabled')).toBe('true')
  await list.getByText('Read to the end of the list').waitFor()
  // Nothing in it is to be scrolled by itself: the end of the list is the end of every command.
  const inner = `[...document.querySelectorAll('[data-listed] [role=group]')].map((box) => box.scrollHeight - box.clientHeight)`
  await expect.poll(() => me.page.evaluate(inner)).toEqual([0, 0, 0])
  session.append('tool:approval_resolved', { callId: 'gone', approved: false, by: 'human' })
  session.ask('t', [run('late')])
  await list.getByText('1 call has arrived since').waitFor()
  const end = list.getByText('rm -rf hidden').last()
  const more = list.getByRole('button', { name: 'More below' })
  for (let press = 0; (await more.count()) > 0; press++) {
    expect(press).toBeLessThan(20)
    // It may go between the look and the click.
    await more.click({ timeout: 2000 }).catch(() => {})
    await me.page.evaluate('new Promise(requestAnimationFrame)')
  }
  await end.waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await me.approveListed()
  await expect.poll(() => session.hashes).toEqual(['hash-a', 'hash-long'])
  expect(decided(session)).toEqual(['a', 'long'])
  expect(now().offences).toEqual([])
})

it('lists the waiting calls that “Always allow” approves too, and says in their records who did', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    const changed = { ...run('changed'), definitionChange: { before: 'reads', after: 'deletes' } }
    opened.ask('t', [run('a'), run('b'), changed, { callId: 'other', name: 'read_file', args: { path: 'x' } }])
  })
  await me.page
    .locator('[data-call="b"]')
    .getByRole('button', { name: /^Always allow/ })
    .click()
  const list = me.page.getByRole('dialog', { name: 'Always allow execute_command, and approve 2 calls?' })
  await list.locator('[data-listed="a"]').waitFor()
  await expect.poll(() => me.read(list.locator('[data-listed]'))).toMatch(/echo b[\s\S]*echo a/)
  expect(decided(session)).toEqual([])
  await list.getByRole('button', { name: 'Always allow' }).and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => decided(session)).toEqual(['a', 'b'])
  expect(session.hashes).toEqual(['hash-b'])
  await me.page.getByText('Approved by “Always allow” in this session').first().waitFor()
  await expect.poll(() => me.cards.count()).toBe(2)
})

it('opens at the first call that waits, however long the conversation and the cards are', async () => {
  const lines = (name: string) => ({ ...run(name), args: { command: `echo ${name}\n${'true\n'.repeat(60)}` } })
  const { me } = await now().arrive((opened) => {
    for (let turn = 0; turn < 80; turn++) opened.append('user:message', { turnId: `t${turn}`, text: `message ${turn}` })
    opened.ask('t79', ['first', 'second', 'third', 'fourth'].map(lines))
  })
  const place = `(() => {
    const card = document.querySelector('[data-call="first"]')?.getBoundingClientRect()
    const list = document.querySelector('[aria-label=Messages]').getBoundingClientRect()
    return card && card.top >= list.top - 1 && card.top < list.bottom - 100
  })()`
  await expect.poll(() => me.page.evaluate(place)).toBe(true)
  await me.page.evaluate('new Promise((done) => setTimeout(() => requestAnimationFrame(done), 500))')
  expect(await me.page.evaluate(place)).toBe(true)
})

it('asks before an Escape discards an edit, and keeps the keyboard on the card; not for one that ends a composition', async () => {
  const { me, session } = await now().arrive(asking('a'))
  await me.page.keyboard.press('Alt+P')
  await me.page.locator(armed).first().waitFor()
  await me.page.keyboard.press('e')
  const field = me.page.locator('.approval-card textarea')
  const question = me.page.getByRole('dialog', { name: 'Discard your changes?' })
  await field.fill('echo changed')
  await field.dispatchEvent('keydown', { key: 'Escape', isComposing: true, bubbles: true })
  expect(await question.count()).toBe(0)
  for (let round = 0; round < 2; round++) {
    await field.press('Escape')
    await question.waitFor()
    await me.page.keyboard.press('Escape')
    await question.waitFor({ state: 'hidden' })
    await expect.poll(() => field.inputValue()).toBe('echo changed')
  }
  // An Escape right after the one that closed the question asks again.
  await field.press('Escape')
  await question.waitFor()
  await me.page.evaluate(`(async () => {
    document.querySelector('dialog[open]').requestClose()
    for (let round = 0; round < 20; round++) await Promise.resolve()
    const escape = new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true })
    document.querySelector('.approval-card textarea').dispatchEvent(escape)
  })()`)
  await question.getByRole('button', { name: 'Discard' }).and(me.page.locator('[aria-disabled=false]')).click()
  await field.waitFor({ state: 'hidden' })
  await me.page.locator(armed).first().waitFor()
  await me.page.keyboard.press('r')
  await me.page.getByLabel('Reason for the model').press('Escape')
  await me.page.locator(armed).first().waitFor()
  await me.page.keyboard.press('e')
  await expect.poll(() => field.inputValue()).toBe('echo a')
  await field.press('Escape')
  await field.waitFor({ state: 'hidden' })
  expect(decided(session)).toEqual([])
})

it.each([
  ['edit', /^Edit, then approve/, 'Your edit was not used: this call was decided elsewhere.'],
  ['reason', /^Reject/, 'Your reason was not sent: this call was decided elsewhere.']
])('says that what was written is overtaken by a decision elsewhere: %s', async (_name, button, words) => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  const card = me.page.locator('[data-call="a"]')
  await card.locator('[data-approve][aria-disabled=false]').waitFor()
  await card.getByRole('button', { name: button }).click()
  await card.locator('textarea, input').fill('something else')
  session.append('tool:approval_resolved', { callId: 'b', approved: true, by: 'human' })
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
  await me.page.getByText(words).waitFor()
})

it('says that an edit is too much to send, and keeps it', async () => {
  const { me, session } = await now().arrive(asking('a'))
  await me.button(/^Edit, then approve/).click()
  const field = me.page.locator('.approval-card textarea')
  await field.fill('x'.repeat(1_100_000))
  await me.page.locator('.approval-card [type=submit][aria-disabled=false]').click()
  await me.page.getByText('These arguments are too long to be edited here').waitFor()
  await field.fill('echo less')
  await me.page.locator('.approval-card [type=submit][aria-disabled=false]').click()
  await expect.poll(() => session.transcript.calls.a?.decision?.editedArgs).toEqual({ command: 'echo less' })
  expect(now().offences).toEqual([])
})
