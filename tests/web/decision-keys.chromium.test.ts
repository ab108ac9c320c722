/** Nobody approves by typing: keys count on the card that visibly has the keyboard, and no single one decides. */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { inboxCard } from './inbox-card.ts'
import { seriousFaults } from './serious-faults.ts'
import type { WorkspacePage } from './workspace-page.ts'

const now = useFakePage()
const run = (callId: string) => ({ callId, name: 'execute_command', args: { command: `rm -rf important-${callId}` } })
const asking =
  (...callIds: string[]) =>
  (session: FakeSession) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask('t', callIds.map(run))
  }
const decisions = ({ transcript }: FakeSession) =>
  Object.values(transcript.calls).flatMap(({ callId, decision }) =>
    decision ? [`${callId} ${decision.approved ? 'approved' : 'rejected'}`] : []
  )
const reason = (me: WorkspacePage) => me.page.getByRole('textbox', { name: /Reason/ })

/**
 * The page's clock stands still between the keys: what was typed in one go is so however slow the machine is. It does not leap so far
 * ahead that the page takes its connection for dead: it would reconnect, and at what key depends on the machine.
 */
async function stopClock({ page }: WorkspacePage): Promise<void> {
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + 10_000)
}
async function typeEvery(me: WorkspacePage, ms: number, keys: string[]): Promise<void> {
  for (const key of keys) {
    await me.page.keyboard.press(key === ' ' ? 'Space' : key)
    await me.page.clock.runFor(ms)
  }
}

// Checked: if letters decide, "a" approves.
it('puts everything typed after Alt+P and R into the reason, and approves nothing', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  await me.cards.first().waitFor()
  await me.page.keyboard.press('Alt+p')
  await me.page.locator('[data-call="a"]:focus').waitFor()
  await me.page.keyboard.press('r')
  await me.page.keyboard.type('no way, wrong file')
  expect(decisions(session)).toEqual([])
  await expect.poll(() => reason(me).inputValue()).toBe('no way, wrong file')
  await me.enterReason()
  await expect.poll(() => session.transcript.calls.a?.decision).toMatchObject({ reason: 'no way, wrong file' })
  expect(decisions(session)).toEqual(['a rejected'])
  expect(now().offences).toEqual([])
})

// Checked: if letters decide, "hold on" sets "Always allow".
it.each(['hold on', 'no way, wrong file', 'wait a\n', ' a \n'])(
  'takes %j on a card for typing, says so, and decides nothing',
  async (text) => {
    const { me, session } = await now().arrive(asking('a', 'b'))
    await me.page.keyboard.press('Alt+p')
    await me.page.locator('.approval-card:focus [data-approve][aria-disabled=false]').waitFor()
    await stopClock(me)
    for (const ms of [50, 150, 290]) {
      await typeEvery(
        me,
        ms,
        [...text].map((key) => (key === '\n' ? 'Enter' : key))
      )
      await me.cards.getByText('That looked like typing').first().waitFor()
      expect(await reason(me).count()).toBe(0)
      await me.page.clock.runFor(5000)
    }
    await me.page.evaluate('fetch("/healthz")')
    expect(decisions(session)).toEqual([])
    expect(session.transcript.allowed).toEqual({})
    expect(await me.composer.inputValue()).toBe('')
  }
)

it('approves by keyboard with A and Enter, card by card, and shows which card has the keys', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  await me.cards.first().waitFor()
  const keys = (callId: string) => me.page.locator(`[data-call="${callId}"]`).getByText('A, then Enter: approve')
  expect(await keys('a').isVisible()).toBe(false)
  await me.page.keyboard.press('Alt+p')
  await keys('a').waitFor()
  expect(await keys('b').isVisible()).toBe(false)
  const ring = await me.page.evaluate(
    `['a', 'b'].map((id) => getComputedStyle(document.querySelector('[data-call="' + id + '"]')).outlineStyle)`
  )
  expect(ring).toEqual(['solid', 'none'])
  await me.approveByKeyboard()
  await expect.poll(() => decisions(session)).toEqual(['a approved'])
  await keys('b').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await me.approveByKeyboard()
  await expect.poll(() => decisions(session)).toEqual(['a approved', 'b approved'])
  await expect.poll(() => me.page.evaluate('document.activeElement.id')).toBe('composer')
  expect(now().offences).toEqual([])
})

it('takes Enter only as the next key, after a pause, and for a card that is in sight', async () => {
  const { me, session } = await now().arrive((opened) => {
    for (let turn = 0; turn < 40; turn++) opened.append('user:message', { turnId: `t${turn}`, text: `message ${turn}` })
    opened.ask('t39', [run('a')])
  })
  await me.page.keyboard.press('Alt+p')
  await me.page.locator('.approval-card:focus [data-approve][aria-disabled=false]').waitFor()
  await stopClock(me)
  const button = me.page.locator('[data-approve]:focus')
  await typeEvery(me, 100, ['a', 'Enter', 'Enter'])
  await typeEvery(me, 400, ['Escape'])
  await button.waitFor({ state: 'hidden' })
  expect(session.transcript.turnId).toBe('t39')
  await typeEvery(me, 400, ['a'])
  await button.waitFor()
  const top = 'document.querySelector("[data-approve]").getBoundingClientRect().top'
  await me.page.evaluate('document.querySelector("[aria-label=Messages]").scrollTop -= innerHeight')
  await expect.poll(() => me.page.evaluate(`${top} > innerHeight`)).toBe(true)
  await typeEvery(me, 400, ['Enter'])
  await expect.poll(() => me.page.evaluate(`${top} < innerHeight`)).toBe(true)
  expect(decisions(session)).toEqual([])
  await typeEvery(me, 400, ['Enter'])
  await expect.poll(() => decisions(session)).toEqual(['a approved'])
})

it('takes typing in the inbox for no answer either, and goes on to the next card by keyboard', async () => {
  now().fake.approvals = [inboxCard('a'), inboxCard('b')]
  const { me } = await now().arrive()
  await me.button('Waiting for you: 2').click()
  await me.page.locator('[data-card="a"]').focus()
  await me.page.keyboard.type('hold on, wait a\n')
  await me.page.getByText('That looked like typing').waitFor()
  expect(now().fake.answered).toEqual([])
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.getByText('That looked like typing').waitFor({ state: 'hidden' })
  await me.approveByKeyboard()
  await expect.poll(() => now().fake.answered).toEqual(['a'])
  now().fake.approvals = [inboxCard('b')]
  await me.page.locator('[data-card="b"]:focus').waitFor()
  await me.page.keyboard.press('r')
  await me.page.keyboard.type('all wrong')
  await expect.poll(() => reason(me).inputValue()).toBe('all wrong')
  expect(now().offences).toEqual([])
})

// Seeds are fixed: a burst that once approved would do so in every run.
it.each([11, 17, 33])(
  'approves nothing by keys pressed at random in one go, with Tab, Enter and Space among them (%i)',
  async (seed) => {
    const { me, session } = await now().arrive(asking('a', 'b', 'c'))
    await me.page.keyboard.press('Alt+p')
    await me.page.locator('.approval-card:focus [data-approve][aria-disabled=false]').waitFor()
    await stopClock(me)
    let state = seed
    const random = (below: number) => {
      state = (state * 48_271) % 2_147_483_647
      return state % below
    }
    const keys = [
      'a',
      'r',
      'e',
      'l',
      'x',
      'a',
      'Tab',
      'Tab',
      'Shift+Tab',
      'Enter',
      'Enter',
      'Space',
      'Escape',
      'Backspace',
      'Alt+p'
    ]
    for (let stroke = 0; stroke < 120; stroke++) {
      await me.page.keyboard.press(keys[random(keys.length)] ?? 'a')
      await me.page.clock.runFor(random(300))
    }
    await me.page.evaluate('fetch("/healthz")')
    expect(decisions(session).filter((decision) => decision.endsWith('approved'))).toEqual([])
    expect(session.transcript.allowed).toEqual({})
    expect(session.transcript.turnId).toBe('t')
  }
)
