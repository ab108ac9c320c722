/** The card of a write shows what the write would do: to the file as it is when the person looks. */
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import type { PathTarget } from '../../contract/path-target.ts'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'

const now = useFakePage()

function asking(...calls: Record<string, unknown>[]): (session: FakeSession) => void {
  return (session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask(
      't',
      calls.map((args, at) => ({ callId: `c${at}`, name: 'write_file', args }))
    )
  }
}

// Checked: if every write is shown as a replacement, the card shows no content.
it('shows the text that is appended, and not the whole file as removed or unchanged', async () => {
  now().fake.files.set('log.txt', Buffer.from('one\n'))
  const { me } = await now().arrive(asking({ path: 'log.txt', content: 'one\n', append: true }))
  await me.cards.getByText('Added to the end').waitFor()
  await me.cards.getByText('Add 4 B to the end of log.txt').waitFor()
  await expect.poll(() => me.read(me.cards.getByRole('group', { name: 'Changes to log.txt' }))).toMatch(/^\+\s*one$/)
})

it('shows the arguments as they are if nothing can be compared', async () => {
  now().fake.files.set('a.bin', Buffer.from('old\n'))
  const { me } = await now().arrive(
    asking({ path: 'a.bin', content: 'aGVsbG8=', encoding: 'base64' }, { path: 'a.bin', content: 'new', append: 'yes' })
  )
  await me.cards.getByText('Write 5 B to a.bin').waitFor()
  const asked = () => me.read(me.cards.getByRole('group', { name: 'Arguments' }))
  await expect.poll(asked).toMatch(/aGVsbG8=[\s\S]*base64[\s\S]*new/)
  expect(await me.page.getByRole('group', { name: /^Changes/ }).count()).toBe(0)
})

it('compares again when a call or a person has changed the file meanwhile', async () => {
  const { fake } = now()
  fake.files.set('a.txt', Buffer.from('old\n'))
  const { me, session } = await now().arrive(
    asking({ path: 'a.txt', content: 'first\n' }, { path: 'a.txt', content: 'second\n' })
  )
  const second = me.page.locator('[data-call="c1"]').getByRole('group', { name: 'Changes to a.txt' })
  await second.getByText('old').waitFor()
  await me.approve()
  await me.page.getByText('You approved it').first().waitFor()
  fake.files.set('a.txt', Buffer.from('first\n'))
  session.append('tool:started', { callId: 'c0' })
  session.append('tool:result', { callId: 'c0', isError: false, content: [] })
  await second.getByText('first').waitFor()
  await expect.poll(() => me.read(second)).not.toContain('old')
  // Seen before: the card went on showing the file as it was before the person edited it.
  fake.files.set('a.txt', Buffer.from('by a person\n'))
  const files = [{ action: 'edited' as const, path: 'a.txt' }]
  session.append('session:notice', { code: 'files_changed', message: 'You edited a.txt.', files })
  await second.getByText('by a person').waitFor()
  // Whatever happened while the connection was away is in the snapshot alone.
  fake.files.set('a.txt', Buffer.from('third\n'))
  fake.breakConnections()
  await second.getByText('third').waitFor()
  // The approval says which content the card showed, so that the sandbox replaces no other.
  await me.approve()
  const seen = createHash('sha256').update('third\n').digest('hex')
  await expect.poll(() => session.answers.at(-1)).toMatchObject({ callId: 'c1', approved: true, seen })
})

/** Cards out of sight are not drawn. */
const TALL = { viewport: { width: 1200, height: 5000 } }
const PRECIOUS: PathTarget = { path: '/workspace/precious.txt', is: 'file', bytes: 8 }

// Checked: if the path is looked up as written, the card says "New file" for all of them.
it('says where a path leads and what is there, and compares with that', async () => {
  now().fake.files.set('precious.txt', Buffer.from('precious\n'))
  const write = (path: string, target: PathTarget) => ({ name: 'write_file', args: { path, content: 'x\n' }, target })
  const calls = [
    write('../workspace/precious.txt', PRECIOUS),
    write('//workspace/precious.txt', PRECIOUS),
    write('link/precious.txt', { ...PRECIOUS, throughLink: true }),
    write('a.txt', { path: '/workspace/a.txt', is: 'new' }),
    write('folder', { path: '/workspace/folder', is: 'folder' }),
    write('/etc/passwd', { path: null, is: 'unusable', problem: '"/etc/passwd" is outside\u202e' }),
    write('b.txt', { path: '/workspace/b.txt', is: 'unchecked' }),
    {
      name: 'read_file',
      args: { path: 'l\u200b' },
      target: { path: '/workspace/l\u200bx', is: 'file' as const, bytes: 3 }
    },
    {
      name: 'list_files',
      args: { path: 'link' },
      target: { path: '/workspace/d', is: 'folder' as const, throughLink: true as const }
    }
  ]
  const { me } = await now().arrive((session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask(
      't',
      calls.map((call, at) => ({ ...call, callId: `c${at}` }))
    )
  }, TALL)
  const text = async (at: number) => me.read(me.page.locator(`[data-call="c${at}"]`))
  for (const at of [0, 1, 2]) {
    await me.page.locator(`[data-call="c${at}"]`).getByText('Changes the file').waitFor()
    await expect.poll(() => text(at)).toContain('Overwrites /workspace/precious.txt, which has 8 B now.')
    expect(await text(at)).not.toMatch(/new file/i)
  }
  await expect.poll(() => text(2)).toContain('through a symbolic link')
  await expect.poll(() => text(3)).toContain('New file /workspace/a.txt.')
  await expect.poll(() => text(4)).toContain('This will fail: /workspace/folder is a folder.')
  await expect.poll(() => text(5)).toMatch(/This will fail: "\/etc\/passwd" is outside\s*U\+202E/)
  await expect.poll(() => text(6)).toContain('/workspace/b.txt could not be checked.')
  await expect.poll(() => text(7)).toMatch(/Reads \/workspace\/l\s*U\+200B\s*x, which has 3 B\./)
  await expect.poll(() => text(8)).toContain('Lists /workspace/d. The path leads there through a symbolic link.')
})

it('asks again, with the reason, when the path led elsewhere; the first answer does not count then', async () => {
  const args = { path: 'a.txt', content: 'x' }
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    opened.ask('t', [{ callId: 'c', name: 'write_file', args, target: { path: '/workspace/a.txt', is: 'new' } }])
  })
  await me.cards.getByText('New file /workspace/a.txt.').waitFor()
  await me.approve()
  await me.page.getByText('You approved it').first().waitFor()
  session.append('tool:started', { callId: 'c' })
  const again = { times: 2, reason: 'You approved this call, but its path now\u202e leads to something else.' }
  session.ask('t', [{ callId: 'c', name: 'write_file', args, target: PRECIOUS, again, hash: 'second' }])
  await me.cards.getByText('It has not run. Please decide.').waitFor()
  await expect.poll(() => me.read(me.cards)).toMatch(/path now\s*U\+202E\s*leads/)
  await me.cards.getByText('Overwrites /workspace/precious.txt').waitFor()
  await me.approve()
  await expect.poll(() => session.answers.map(({ hash }) => hash)).toEqual(['hash-c', 'second'])
})

it('shows where an edited path leads before it can be approved, and sends that along', async () => {
  const args = { path: 'a.txt', content: 'x', 'exec\u200b': 'y' }
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    opened.ask('t', [{ callId: 'c', name: 'write_file', args, target: { path: '/workspace/a.txt', is: 'new' } }])
  })
  session.onTarget = ({ path }) => (path === '../workspace/precious.txt' ? PRECIOUS : undefined)
  await me.button('Edit, then approve').click()
  await me.cards.getByText('New file /workspace/a.txt.').waitFor()
  await expect.poll(() => me.read(me.cards)).toMatch(/exec\s*U\+200B/)
  await me.cards.getByLabel('path').fill('../workspace/precious.txt')
  await me.cards.getByText('Overwrites /workspace/precious.txt, which has 8 B now.').waitFor()
  await me.button('Approve with changes').click()
  await expect.poll(() => session.answers.length).toBe(1)
  expect(session.answers[0]).toMatchObject({ args: { path: '../workspace/precious.txt' }, target: PRECIOUS })
})
