import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, PHONE, type Visit, visit, watchOffences } from '../support/browser.ts'
import { type Served, stopServers } from '../support/serve.ts'
import { pngOf } from '../support/tiny-png.ts'
import { seriousFaults } from './serious-faults.ts'
import { servePage } from './serve-page.ts'
import { WorkspacePage } from './workspace-page.ts'

type Drawn = { naturalWidth: number }

let server: Served
let browser: Browser
const visits: Visit[] = []

async function arrive(options: Parameters<typeof visit>[2] = {}): Promise<WorkspacePage & { visit: Visit }> {
  const one = await visit(browser, server.url, options)
  visits.push(one)
  const workspace = Object.assign(new WorkspacePage(one.page), { visit: one })
  await workspace.composer.waitFor()
  return workspace
}

beforeAll(async () => {
  server = await servePage()
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await stopServers()
})
afterEach(async () => {
  for (const one of visits.splice(0)) await one.close()
})

describe('a first minute', () => {
  it('arrives, asks for a file, sees the diff, approves, sees the file, reloads, and all is there', async () => {
    const me = await arrive()
    await me.ask('write hello.txt: first line')
    await me.cards.getByText('New file').waitFor()
    await me.cards.getByText('first line').first().waitFor()
    await expect.poll(() => me.page.title()).toMatch(/^\(1\) Needs your approval/)
    await me.approve()
    await me.quiet()
    await me.button('Show the files').click()
    await me.button(/^hello\.txt/).click()
    await me.page.getByRole('dialog').getByText('first line').waitFor()
    await me.page.keyboard.press('Escape')

    await me.page.reload()
    await me.page.getByText('You approved it').first().waitFor()
    await me.button(/^hello\.txt/).waitFor()
    await me.ask('write hello.txt: second line')
    await me.cards.getByText('Changes the file').waitFor()
    const changes = me.cards.getByRole('group', { name: 'Changes to hello.txt' })
    await expect.poll(() => me.read(changes)).toMatch(/−\s*first line[\s\S]*\+\s*second line/)
    // The approved change stays in the record, also when the file has changed again.
    await me.approve()
    await me.quiet()
    await me.ask('run rm hello.txt')
    await me.approve()
    await me.quiet()
    await me.page.reload()
    const record = me.page.getByRole('group', { name: 'Changes to hello.txt' }).last()
    await expect.poll(() => me.read(record)).toMatch(/−\s*first line[\s\S]*\+\s*second line/)
    expect(me.visit.offences).toEqual([])
  })
})

describe('decisions', () => {
  it('rejects with a reason, and nothing runs', async () => {
    const me = await arrive()
    await me.ask('run touch never.txt')
    await me.button('Reject…').click()
    await me.page.getByRole('textbox', { name: /Reason/ }).fill('not today')
    await me.button('Reject this call').click()
    await me.page.getByText('You rejected it').first().waitFor()
    await me.page.getByText('Reason: not today', { exact: true }).waitFor()
    await me.quiet()
    expect(await me.button(/^approve/i).count()).toBe(0)
    await me.ask('run ls -a')
    await me.approve()
    await me.quiet()
    await expect.poll(() => me.read(me.outputs.last())).toContain('..')
    expect(await me.read(me.outputs.last())).not.toContain('never.txt')
    expect(me.visit.offences).toEqual([])
  })

  it('runs what was edited, and says that it was', async () => {
    const me = await arrive()
    await me.ask('run echo asked')
    await me.button(/^Edit, then approve/).click()
    await me.page.getByRole('textbox', { name: 'command' }).fill('echo ed"it"ed')
    await me.button('Approve with changes').click()
    await me.page.getByText('You edited and approved it').first().waitFor()
    await me.quiet()
    await expect.poll(() => me.read(me.outputs)).toBe('edited')
    expect(me.visit.offences).toEqual([])
  })

  it('approves all of three at once; each runs once', async () => {
    const me = await arrive()
    await me.say('run echo one >> log\nrun echo two >> log\nrun echo three >> log')
    await me.cards.nth(2).waitFor()
    await me.page.getByText('1 of 3', { exact: true }).waitFor()
    await me.button('Approve all 3').click()
    await me.approveListed()
    await me.quiet()
    await me.ask('run sort log')
    await me.approve()
    await me.quiet()
    await expect.poll(() => me.read(me.outputs.last())).toBe('one\nthree\ntwo')
    expect(me.visit.offences).toEqual([])
  })

  it('always allows a tool in this session, until that is taken back', async () => {
    const me = await arrive()
    await me.ask('run echo 1')
    await me.button(/^Always allow/).click()
    await me.alwaysAllow()
    await me.quiet()
    await me.say('run echo two-$((1+1))')
    await me.page.getByText('Approved by “Always allow” in this session').first().waitFor()
    await me.outputs.getByText('two-2').waitFor()
    await me.quiet()
    await me.button('Settings').click()
    await me.button('Ask again for execute_command').click()
    await me.button('Ask again for execute_command').waitFor({ state: 'hidden' })
    await me.page.keyboard.press('Escape')
    await me.ask('run echo 3')
    expect(me.visit.offences).toEqual([])
  })
})

describe('files and sessions', () => {
  it('uploads and downloads files, shows what a call changed, and keeps what was typed', async () => {
    const me = await arrive()
    await me.button('Show the files').click()
    await me.page
      .getByLabel('Files to upload')
      .setInputFiles({ name: 'data.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') })
    await me.button(/^data\.csv/).waitFor()
    // As many bytes as before: its time alone says that it changed.
    await me.ask('run wc -l < data.csv > count.txt; echo a,b > data.csv; echo 3,4 >> data.csv')
    await me.approve()
    await me.button(/^count\.txt\s*new/).waitFor()
    await me.button(/^data\.csv\s*changed/).click()
    const download = me.page.waitForEvent('download')
    await me.page.getByRole('button', { name: 'Download this file' }).click()
    expect((await download).suggestedFilename()).toBe('data.csv')
    await me.page.keyboard.press('Escape')
    const all = me.page.waitForEvent('download')
    await me.page.getByRole('button', { name: 'Download all files' }).click()
    expect((await all).suggestedFilename()).toMatch(/\.tar\.gz$/)
    await me.quiet()
    await me.composer.fill('half a thought')
    await me.page.reload()
    await expect.poll(() => me.composer.inputValue()).toBe('half a thought')
    expect(me.visit.offences).toEqual([])
  })

  it('attaches an image, puts it into the workspace, and shows it after a reload and when a tool reads it', async () => {
    const me = await arrive()
    const image = { name: 'red.png', mimeType: 'image/png', buffer: pngOf(40, 30) }
    await me.page.getByLabel('Files to attach').setInputFiles([image])
    await me.page.getByText("can't look at images").waitFor()
    await me.ask('read attachments/red.png')
    await me.approve()
    await me.quiet()
    await me.button('Show the files').click()
    await me.button(/^attachments/).click()
    await me.button(/^red\.png/).waitFor()
    await me.page.reload()
    const images = me.page.getByRole('button', { name: /^Open (red\.png|image 1)$/ }).locator('img')
    const widths = () => images.evaluateAll((all) => all.map((each) => (each as unknown as Drawn).naturalWidth))
    await expect.poll(widths).toEqual([40, 40])
    expect(me.visit.offences).toEqual([])
  })

  it('lists, renames, exports and deletes sessions', async () => {
    const me = await arrive()
    await me.ask('run echo kept')
    await me.approve()
    await me.quiet()
    await me.button(/^More for run echo kept/).click()
    await me.button('Rename').click()
    await me.page.getByLabel('Title of the session').fill('My experiment')
    await me.page.keyboard.press('Enter')
    await me.button(/^My experiment/).waitFor()
    for (const [format, ending] of [
      ['Markdown', /\.md$/],
      ['JSON', /\.json$/]
    ] as const) {
      await me.button('More for My experiment').click()
      const download = me.page.waitForEvent('download')
      await me.page.getByRole('button', { name: `Export as ${format}` }).click()
      expect((await download).suggestedFilename()).toMatch(ending)
    }
    const before = me.sessionId()
    await me.button('More for My experiment').click()
    await me.button('Delete').last().click()
    await me.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await me.button(/^My experiment/).waitFor({ state: 'hidden' })
    await expect.poll(() => me.sessionId()).not.toBe(before)
    await me.composer.waitFor()
    expect(me.visit.offences).toEqual([])
  })
})

describe('several windows', () => {
  it('shows in one tab what is decided in the other', async () => {
    const me = await arrive()
    await me.ask('run echo shared')
    const second = await me.page.context().newPage()
    const offences = watchOffences(second, server.url)
    await second.goto(`${server.url}/#/s/${me.sessionId()}`)
    const other = new WorkspacePage(second)
    await other.cards.first().waitFor()
    await other.approve()
    await me.page.getByText('You approved it').first().waitFor()
    await me.outputs.getByText('shared').waitFor()
    await other.outputs.getByText('shared').waitFor()
    expect([...me.visit.offences, ...offences]).toEqual([])
  })

  it('works on a phone: nothing wider than the screen, buttons that a thumb can hit', async () => {
    const me = await arrive({ viewport: PHONE, hasTouch: true, isMobile: true })
    await me.ask(`write ${'long-name-'.repeat(12)}.txt: ${'a wide line '.repeat(40)}`)
    await me
      .button(/^Approve$/)
      .first()
      .waitFor()
    const box = await me
      .button(/^Approve$/)
      .first()
      .boundingBox()
    expect(box?.height).toBeGreaterThanOrEqual(36)
    expect(box?.width).toBeGreaterThanOrEqual(100)
    await me
      .button(/^Approve$/)
      .first()
      .tap()
    await me.quiet()
    await expect
      .poll(() => me.page.evaluate('document.documentElement.scrollWidth - innerWidth'))
      .toBeLessThanOrEqual(0)
    await me.button('Show the files').tap()
    await me.button(/^long-name/).waitFor()
    await me.button('Close the files').tap()
    expect(me.visit.offences).toEqual([])
  })

  it('works with the keyboard alone', async () => {
    const me = await arrive()
    const { keyboard } = me.page
    await keyboard.type('run echo one-$((1+0))')
    await keyboard.press('Shift+Enter')
    await keyboard.type('run echo two-$((1+1))')
    await keyboard.press('Enter')
    await me.cards.nth(1).waitFor()
    await keyboard.press('Alt+p')
    await me.page.locator('.approval-card:focus').waitFor()
    await me.approveByKeyboard()
    await me.outputs.getByText('one-1').waitFor()
    await me.page.locator('.approval-card:focus button[aria-disabled=false]').first().waitFor()
    await keyboard.press('r')
    await keyboard.type('no need')
    await me.enterReason()
    await me.page.getByText('Reason: no need', { exact: true }).waitFor()
    await me.quiet()
    await expect.poll(() => me.page.evaluate('document.activeElement.id')).toBe('composer')
    await keyboard.press('ArrowUp')
    await expect.poll(() => me.composer.inputValue()).toContain('run echo two-')
    await me.composer.fill('run sleep 100')
    await keyboard.press('Enter')
    await me.cards.first().waitFor()
    await me.stopByKeyboard()
    await me.page.getByText('You stopped this turn.').waitFor()
    expect(me.visit.offences).toEqual([])
  })
})

describe('the server gone', () => {
  it('says so, reconnects by itself, and shows the true outcome of a call that was cut off', async () => {
    const me = await arrive()
    await me.ask('run echo started; sleep 300')
    await me.approve()
    await me.outputs.getByText('started').waitFor()
    await server.kill9()
    await me.page.getByText('Reconnecting…').waitFor()
    await me.say('run echo after')
    await me.page.getByText('Queued:').waitFor()
    server = await servePage(server)
    await me.page.getByText('Reconnecting…').waitFor({ state: 'hidden' })
    await me.page.getByText('Outcome unknown: the server was restarted').waitFor()
    await me.cards.first().waitFor()
    await me.approve()
    await me.outputs.getByText('after').waitFor()
    // The browser itself logs errors about a server that is away. They are not the page's fault.
    expect(me.visit.offences.filter((text) => !/WebSocket|ERR_CONNECTION|Failed to load/.test(text))).toEqual([])
  })
})

describe('hostile text', () => {
  // Checked: with `v-html`, the tag is no longer text.
  it('is shown as text, and does nothing, in messages, arguments, names, output and answers', async () => {
    const me = await arrive()
    const script = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
    await me.ask(`write ev\u202etxt.exe: ${script} a\u200bb`)
    for (const shown of ['U+202E', 'U+200B', '<script>window.hacked=1</script>'])
      await expect.poll(() => me.read(me.cards)).toContain(shown)
    await me.approve()
    await me.quiet()
    await me.button('Show the files').click()
    await me.page
      .getByRole('complementary', { name: 'Files' })
      .getByRole('button', { name: /^ev\s*U\+202E/ })
      .waitFor()
    await me.ask(`run printf '${script} \\xe2\\x80\\xae [x](javascript:alert(1)) \\x1b]0;title\\x07'`)
    await me.approve()
    await me.outputs.filter({ hasText: 'window.hacked' }).getByText('U+202E').first().waitFor()
    await me.quiet()
    expect(await me.page.evaluate('window.hacked')).toBeUndefined()
    expect(await me.page.locator('img[src="x"], a[href^="javascript"]').count()).toBe(0)
    expect(me.visit.offences).toEqual([])
  })
})

describe('accessibility', () => {
  it('has no serious fault on any screen, light or dark', async () => {
    const me = await arrive()
    const faults: string[] = []
    const look = async (screen: string) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await me.page.emulateMedia({ colorScheme })
        faults.push(...(await seriousFaults(me.page)).map((id) => `${screen}, ${colorScheme}: ${id}`))
      }
    }
    await look('empty')
    await me.button('Choose a model').click()
    await look('model menu')
    await me.page.keyboard.press('Escape')
    await me.button('Settings').click()
    await look('settings')
    await me.page.keyboard.press('Escape')
    await me.ask('write notes.txt: one\nrun ls --color=always -la /')
    await me.button('Show the files').click()
    await look('cards')
    await me
      .button(/^Edit, then approve/)
      .last()
      .click()
    await me.button('Reject…').first().click()
    await look('edit and reject')
    await me.button(/^Back$/).click()
    await me.button('Discard changes').click()
    await me.button('Approve all 2').click()
    await look('list of all calls')
    await me.approveListed()
    await me.quiet()
    await look('results')
    await me.button('Timeline of this call').first().click()
    await me.page.getByRole('dialog').getByText('You asked').waitFor()
    await look('timeline')
    await me.page.keyboard.press('Escape')
    await me.button(/^notes\.txt/).click()
    await look('file')
    await me.page.keyboard.press('Escape')
    await me.button('Delete all sessions').click()
    await look('question')
    await me.page.keyboard.press('Escape')
    expect(faults).toEqual([])
    expect(me.visit.offences).toEqual([])
  })
})
