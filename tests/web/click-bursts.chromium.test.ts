/**
 * Clicks that follow each other quickly decide one card at most, because nobody has read the card that came under the pointer meanwhile.
 */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { inboxCard } from './inbox-card.ts'
import type { WorkspacePage } from './workspace-page.ts'

const now = useFakePage()
const run = (callId: string) => ({ callId, name: 'execute_command', args: { command: `echo ${callId}` } })
const asking =
  (...callIds: string[]) =>
  (session: FakeSession) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask('t', callIds.map(run))
  }
const decided = ({ transcript }: FakeSession) =>
  Object.values(transcript.calls).flatMap(({ callId, decision }) => (decision?.approved ? [callId] : []))
const ready = (place: string) => `${place} [data-approve][aria-disabled=false]`

/** The page's clock stands still between the clicks: they are as far apart as the test says, however slow the machine is. */
async function stopClock({ page }: WorkspacePage): Promise<void> {
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + 10_000)
}
async function middleOf(me: WorkspacePage, selector: string): Promise<[number, number]> {
  const box = await me.page.locator(selector).boundingBox()
  if (!box) throw new Error(`${selector} is not on the page`)
  return [box.x + box.width / 2, box.y + box.height / 2]
}

// Seen before: on a busy machine a card was armed before its first frame, in which the page scrolls to it.
it('arms no card before it is drawn', async () => {
  now().fake.onOpen = asking('a')
  const me = await now().open('about:blank')
  await me.page.addInitScript(`{
    const held = []
    const draw = requestAnimationFrame
    globalThis.requestAnimationFrame = (callback) => held.push(callback)
    globalThis.release = () => { globalThis.requestAnimationFrame = draw; held.forEach(draw) }
  }`)
  await me.page.goto(now().fake.url)
  const approve = me.page.locator('[data-call="a"] [data-approve]')
  await approve.waitFor()
  // Timers end in the order of their times: by then, one that had started with the card would have ended too.
  await me.page.evaluate('new Promise((done) => setTimeout(done, 1000))')
  expect(await approve.getAttribute('aria-disabled')).toBe('true')
  await me.page.evaluate('release()')
  await me.page.locator(ready('[data-call="a"]')).waitFor()
})

it.each([
  [130, 8],
  [480, 4],
  [650, 4]
])('approves one call with clicks %i ms apart, and not the one that takes its place', async (ms, clicks) => {
  const { me, session } = await now().arrive(asking('a', 'b', 'c'))
  await me.page.locator(ready('[data-call="a"]')).waitFor()
  await stopClock(me)
  await me.page.mouse.click(...(await middleOf(me, ready('[data-call="a"]'))))
  await me.page.locator('[data-call="a"]').waitFor({ state: 'hidden' })
  const place = await middleOf(me, '[data-call="b"] [data-approve]')
  for (let click = 0; click < clicks; click++) {
    await me.page.clock.runFor(ms)
    await me.page.mouse.click(...place)
  }
  await me.page.evaluate('fetch("/healthz")')
  expect(decided(session)).toEqual(['a'])
  await me.page.clock.runFor(2000)
  await me.page.mouse.click(...place)
  await expect.poll(() => decided(session)).toEqual(['a', 'b'])
  expect(now().offences).toEqual([])
})

it('approves nothing with clicks that go on while a card arrives under the pointer', async () => {
  const { me, session } = await now().arrive(asking('a'))
  await me.page.locator(ready('[data-call="a"]')).waitFor()
  const place = await middleOf(me, '[data-call="a"] [data-approve]')
  const away: [number, number] = [5, 450]
  await stopClock(me)
  for (let click = 0; click < 30; click++) {
    await me.page.mouse.click(...(click === 0 ? away : place))
    await me.page.clock.runFor(100)
  }
  await me.page.evaluate('fetch("/healthz")')
  expect(decided(session)).toEqual([])
  await me.page.clock.runFor(2000)
  await me.page.mouse.click(...place)
  await expect.poll(() => decided(session)).toEqual(['a'])
})

it('answers one card of the inbox with a burst of clicks', async () => {
  now().fake.approvals = [inboxCard('a'), inboxCard('b')]
  const { me } = await now().arrive()
  await me.button('Waiting for you: 2').click()
  await me.page.locator(ready('[data-card="a"]')).waitFor()
  await stopClock(me)
  const place = await middleOf(me, ready('[data-card="a"]'))
  await me.page.mouse.click(...place)
  now().fake.approvals = [inboxCard('b')]
  await expect.poll(() => now().fake.answered).toEqual(['a'])
  await me.page.locator('[data-card="a"]').waitFor({ state: 'hidden' })
  for (let click = 0; click < 5; click++) {
    await me.page.clock.runFor(480)
    await me.page.mouse.click(...place)
  }
  await me.page.evaluate('fetch("/healthz")')
  expect(now().fake.answered).toEqual(['a'])
  await me.page.clock.runFor(2000)
  await me.page.mouse.click(...(await middleOf(me, '[data-card="b"] [data-approve]')))
  await expect.poll(() => now().fake.answered).toEqual(['a', 'b'])
})

const topOf = (me: WorkspacePage, callId: string) =>
  me.page.evaluate<number>(`Math.round(document.querySelector('[data-call="${callId}"]').getBoundingClientRect().top)`)

// Seen before: the list thought that it was at its end, and jumped there after the click, so that the last card came under the pointer.
it('shows the first of several cards, and does not jump when another one is approved', async () => {
  const { me, session } = await now().arrive(() => {}, { viewport: { width: 1440, height: 900 } })
  session.append('user:message', { turnId: 't', text: 'go' })
  session.append('agent:response', { turnId: 't', text: 'Four calls in one step.' })
  session.ask('t', ['a', 'b', 'c', 'd'].map(run))
  await me.page.locator(ready('[data-call="a"]')).waitFor()
  await me.page.locator(ready('[data-call="b"]')).waitFor()
  const list = await me.page.getByRole('region', { name: 'Messages' }).boundingBox()
  await expect.poll(() => topOf(me, 'a')).toBeGreaterThanOrEqual(Math.round(list?.y ?? 0))
  const top = await topOf(me, 'a')
  expect(top).toBeLessThan((list?.y ?? 0) + 150)
  await me.page.mouse.click(...(await middleOf(me, ready('[data-call="b"]'))))
  await expect.poll(() => decided(session)).toEqual(['b'])
  await me.page.locator(ready('[data-call="a"]')).waitFor()
  expect(await topOf(me, 'a')).toBe(top)
})

// Checked: if only the time counts, the second card is decided.
it('takes no click of a pointer that has not moved since the card came under it', async () => {
  const { me, session } = await now().arrive(asking('a', 'b', 'c'))
  await me.page.locator(ready('[data-call="a"]')).waitFor()
  await stopClock(me)
  const place = await middleOf(me, ready('[data-call="a"]'))
  await me.page.mouse.click(...place)
  await me.page.locator('[data-call="a"]').waitFor({ state: 'hidden' })
  await me.page.clock.runFor(100)
  // Bring the next button exactly under the pointer, as a list that scrolls by itself may do.
  const next = await middleOf(me, '[data-call="b"] [data-approve]')
  const shift = `Object.assign(style, { position: 'relative', top: '${place[1] - next[1]}px' })`
  await me.page.evaluate(`{ const { style } = document.querySelector('[data-call="b"]'); ${shift} }`)
  for (const ms of [800, 400, 800]) {
    await me.page.clock.runFor(ms)
    await me.page.mouse.click(...place)
  }
  await me.page.evaluate('fetch("/healthz")')
  expect(decided(session)).toEqual(['a'])
  await me.page.clock.runFor(800)
  await me.page.mouse.move(place[0] + 12, place[1])
  await me.page.locator(ready('[data-call="b"]')).waitFor()
  await me.page.mouse.click(place[0] + 12, place[1])
  await expect.poll(() => decided(session)).toEqual(['a', 'b'])
})

/** A runs and prints, B waits under it. */
function printing(messages: number) {
  return (session: FakeSession) => {
    for (let turn = 0; turn < messages; turn++) session.append('user:message', { turnId: `${turn}`, text: 'before' })
    asking('a', 'b')(session)
    session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
    session.append('tool:started', { callId: 'a' })
  }
}
const print = (session: FakeSession, lines: number) =>
  session.live('tool:output', { callId: 'a', stream: 'stdout', text: 'line\n'.repeat(lines) })

// Seen before: the output of a call pushed the card down, and a click on Approve fell on what came under it; nothing was disarmed.
it('takes no click on a card that output has just moved', async () => {
  const { me, session } = await now().arrive(printing(0))
  const approve = '[data-call="b"] [data-approve]'
  await me.page.locator(ready('[data-call="b"]')).waitFor()
  await stopClock(me)
  const before = await middleOf(me, approve)
  print(session, 5)
  await expect
    .poll(async () => {
      await me.page.clock.runFor(20)
      return (await middleOf(me, approve))[1]
    })
    .toBeGreaterThan(before[1] + 20)
  const place = await middleOf(me, approve)
  expect(await me.page.locator(approve).getAttribute('aria-disabled')).toBe('true')
  await me.page.mouse.click(...place)
  await me.page.evaluate('fetch("/healthz")')
  expect(decided(session)).toEqual(['a'])
  await me.page.clock.runFor(2000)
  await me.page.mouse.click(...place)
  await expect.poll(() => decided(session)).toEqual(['a', 'b'])
})

it.each(['at the end', 'further up'])('keeps a card in its place while output above it grows: %s', async (where) => {
  const { me, session } = await now().arrive(printing(40))
  const approve = me.page.locator('[data-call="b"] [data-approve]')
  await me.page.locator(ready('[data-call="b"]')).waitFor()
  const lines = () => me.page.evaluate<number>(`document.querySelectorAll('[aria-label=Output] *').length`)
  // The box appears between two frames, where it could be measured before it is drawn. Its lines are added within frames.
  print(session, 1)
  await expect.poll(lines).toBeGreaterThanOrEqual(1)
  await me.page.getByRole('region', { name: 'Messages' }).hover()
  await me.page.mouse.wheel(0, 5000)
  const fromEnd = `(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector('[aria-label=Messages]')
    return Math.round(scrollHeight - scrollTop - clientHeight)
  })()`
  await expect.poll(() => me.page.evaluate(fromEnd)).toBe(0)
  if (where === 'further up') await me.page.mouse.wheel(0, -60)
  await expect.poll(() => me.page.evaluate(fromEnd)).toBe(where === 'further up' ? 60 : 0)
  await me.page.locator(ready('[data-call="b"]')).waitFor()
  await me.page.evaluate(`{
    globalThis.seen = []
    const button = document.querySelector('[data-call="b"] [data-approve]')
    const note = () => seen.push([Math.round(button.getBoundingClientRect().top), button.ariaDisabled].join())
    // After the frame is drawn: what is measured within it is not yet what is seen.
    const { port1, port2 } = new MessageChannel()
    const draw = () => requestAnimationFrame(() => { port2.postMessage(0); draw() })
    port1.onmessage = note
    draw()
  }`)
  for (let round = 1; round <= 8; round++) {
    print(session, 1)
    await expect.poll(lines).toBeGreaterThanOrEqual(round + 1)
  }
  await me.page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  expect(await me.page.evaluate('[...new Set(seen)]')).toHaveLength(1)
  await approve.click()
  await expect.poll(() => decided(session)).toEqual(['a', 'b'])
})

// Seen before: at 200 %, the buttons stay at the edge of the window while the card is scrolled, and the click was taken for one on a moved card.
it('takes a click on buttons that have stayed in their place while the card was scrolled', async () => {
  const command = Array.from({ length: 40 }, (_, line) => `echo ${line}`).join('\n')
  const { me, session } = await now().arrive(
    (opened) => {
      opened.append('user:message', { turnId: 't', text: 'go' })
      opened.ask('t', [{ ...run('a'), args: { command } }])
    },
    { viewport: { width: 640, height: 400 } }
  )
  await me.page.locator(ready('[data-call="a"]')).waitFor()
  // On a busy machine, the card may change or hear of earlier scrolling only now. That refuses one click, not all of them.
  for (const by of [30, -30, 30]) {
    // The person reads the command to its end and goes back: otherwise the click is refused for another reason.
    await me.page.evaluate(`new Promise((seen) => {
      const list = document.querySelector('[aria-label=Messages]')
      const end = document.querySelector('[data-call="a"] .seen-end')
      const before = list.scrollTop
      new IntersectionObserver(([entry], observer) => {
        if (!entry.isIntersecting) return
        observer.disconnect()
        list.scrollTop = before
        // The card has moved, so it is disarmed by then.
        requestAnimationFrame(() => requestAnimationFrame(seen))
      }).observe(end)
      end.scrollIntoView({ block: 'center' })
    })`)
    await me.page.locator(ready('[data-call="a"]')).waitFor()
    await me.page.evaluate(`{
      const approve = document.querySelector('[data-call="a"] [data-approve]')
      const list = document.querySelector('[aria-label=Messages]')
      const before = approve.getBoundingClientRect().top
      list.scrollTop += ${by}
      globalThis.isSticky = Math.abs(approve.getBoundingClientRect().top - before) < 1
      approve.click()
    }`)
    expect(await me.page.evaluate('isSticky')).toBe(true)
    const isDecided = expect.poll(() => decided(session)).toEqual(['a'])
    if (await isDecided.then(() => true).catch(() => false)) break
  }
  expect(decided(session)).toEqual(['a'])
})
