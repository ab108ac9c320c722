/** Tests the common behaviour of all dialogs, forms, notices and buttons of the page. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { type FakePage, useFakePage } from '../fake-page.ts'
import { inboxCard } from '../inbox-card.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()

const LONG = Array.from({ length: 300 }, (_, at) => `line ${at} of a long text`).join('\n')
const NOTEBOOK = JSON.stringify({
  cells: [{ cell_type: 'code', source: 'x', outputs: [{ output_type: 'stream', text: LONG }] }]
})
const SIZES = [
  ['1280×800', { viewport: { width: 1280, height: 800 } }],
  ['a phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
  ['200 % zoom', { viewport: { width: 640, height: 400 } }]
] as const

/** The parts of the open dialog that have a scrollbar of their own, beside the dialog's. */
const SCROLLERS = `[...document.querySelector('dialog[open]').querySelectorAll('*')].filter((part) => {
  const { overflowY, display } = getComputedStyle(part)
  return display !== 'none' && /auto|scroll/.test(overflowY) && part.scrollHeight > part.clientHeight + 1
}).map((part) => part.className)`

function withCalls(options: Partial<Parameters<FakePage['arrive']>[1]> = {}) {
  return now().arrive((session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask('t', [
      { callId: 'a', name: 'write_file', args: { path: 'a.txt', content: LONG } },
      { callId: 'b', name: 'execute_command', args: { command: LONG } }
    ])
  }, options)
}

async function serveServers(page: Page) {
  await page.route('**/api/servers', (route) =>
    route.fulfill({
      json: { admin: 'allowed', file: '/etc/mcp.json', problem: null, servers: [], problems: [], exposure: null }
    })
  )
}

const DIALOGS: [string, (me: WorkspacePage) => Promise<void>][] = [
  [
    'the list of calls to approve',
    async (me) => {
      await me
        .button(/^Approve all/)
        .first()
        .click()
    }
  ],
  [
    'the inbox',
    async (me) => {
      await me
        .button(/^(Inbox|Waiting)/)
        .first()
        .click()
      await me.page.locator('.inbox-card').waitFor()
    }
  ],
  [
    'the keyboard shortcuts',
    async (me) => {
      await me.button('Settings').click()
      await me.button('Keyboard shortcuts').click()
    }
  ],
  [
    'a text file',
    async (me) => {
      await me.button('Show the files').click()
      await me.button(/^long\.txt/).click()
    }
  ],
  [
    'a text file that is edited',
    async (me) => {
      await me.button(/^long\.txt/).click()
      // In the dialog: the cards behind it have buttons with this word too.
      await me.page.getByRole('dialog').getByRole('button', { name: 'Edit', exact: true }).click()
      await me.page.getByRole('textbox', { name: /^Content of/ }).waitFor()
    }
  ],
  [
    'a notebook',
    async (me) => {
      await me.button(/^book\.ipynb/).click()
      await me.page.getByRole('dialog').getByText('line 299 of').waitFor()
    }
  ],
  [
    'the form for a server',
    async (me) => {
      await serveServers(me.page)
      await me.page.evaluate(`location.hash = '#/servers'`)
      await me.button(/^Add/).first().click()
      await me.page.getByRole('textbox', { name: /mcpServers/ }).fill(LONG)
    }
  ]
]

// Seen before: boxes with their own scrollbar in a dialog that scrolls too.
it.each(SIZES)(
  'has one scrollbar in every dialog, nothing beside the screen, and no serious fault: %s',
  async (_size, options) => {
    now().fake.files.set('long.txt', Buffer.from(LONG))
    now().fake.files.set('book.ipynb', Buffer.from(NOTEBOOK))
    now().fake.approvals = [inboxCard('x', { content: LONG })]
    const { me } = await withCalls({ ...options })
    const wide =
      'document.querySelector("dialog[open]").scrollWidth - document.querySelector("dialog[open]").clientWidth'
    for (const [name, open] of DIALOGS) {
      await open(me)
      await me.page.getByRole('dialog').waitFor()
      const own = async () => ((await me.page.evaluate(SCROLLERS)) as string[]).slice(1)
      await expect.poll(own, { message: name }).toEqual([])
      expect(await me.page.evaluate(wide), name).toBeLessThanOrEqual(0)
      expect(await seriousFaults(me.page), name).toEqual([])
      await me.page.keyboard.press('Escape')
      await me.page.getByRole('dialog').waitFor({ state: 'hidden' })
    }
  }
)

it('puts the focus on the first field of a form, and keeps what was typed on Escape and when the tab changes', async () => {
  const { me } = await now().arrive()
  const focused =
    'document.activeElement.tagName + " " + (document.activeElement.labels?.[0]?.textContent.trim() ?? "")'
  await serveServers(me.page)
  await me.page.evaluate(`location.hash = '#/servers'`)
  const open = () => me.button('Add a server').click()
  await open()
  await expect.poll(() => me.page.evaluate(focused)).toMatch(/^TEXTAREA The mcpServers object/)
  await me.page.keyboard.type('pasted')
  await me.button('Fill in a form').click()
  await me.page.getByLabel('Name', { exact: true }).fill('typed')
  await me.page.getByLabel('Command', { exact: true }).fill('npx -y pkg')
  const shown = /Runs\s+npx\s+with the arguments\s+-y\s+pkg/
  await expect.poll(() => me.read(me.page.getByRole('dialog'))).toMatch(shown)
  await me.page.keyboard.press('Escape')
  await me.page.getByRole('dialog').waitFor({ state: 'hidden' })
  await open()
  await expect.poll(() => me.page.evaluate(focused)).toMatch(/^INPUT Name/)
  await expect.poll(() => me.page.getByLabel('Name', { exact: true }).inputValue()).toBe('typed')
  await me.button('Paste a client’s JSON').click()
  await expect.poll(() => me.page.getByRole('textbox', { name: /mcpServers/ }).inputValue()).toBe('pasted')
})

it('keeps the path that was typed for a new file when its question is closed with Escape', async () => {
  const { me } = await now().arrive()
  await me.button('Show the files').click()
  const ask = async () => {
    await me.button('New file or folder').click()
    await me.button(/^New file$/).click()
    await me.page.getByLabel('Path in the workspace').and(me.page.locator(':focus')).waitFor()
  }
  await ask()
  await me.page.keyboard.type('half/a/path')
  await me.page.keyboard.press('Escape')
  await ask()
  await expect.poll(() => me.page.getByLabel('Path in the workspace').inputValue()).toBe('half/a/path')
})

const COVERED = `(() => {
  const rects = (query) => [...document.querySelectorAll(query)].map((part) => part.getBoundingClientRect())
  const banners = rects('[data-banner], [role=alertdialog], dialog[open] header, main [role=alert]')
  const toasts = [...document.querySelectorAll('[aria-label=Dismiss]')].map((part) => part.parentElement.getBoundingClientRect())
  const meet = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top
  return toasts.length + ' notices, ' + banners.filter((banner) => toasts.some((toast) => meet(banner, toast))).length + ' covered'
})()`

// Seen before: a notice lay over the title of a dialog, and over a problem that a page reports at its top.
it.each(SIZES)('covers no banner and no title with a notice: %s', async (_size, options) => {
  const { me } = await now().arrive(() => {}, { ...options })
  now().fake.files.set('a.txt', Buffer.from('old'))
  await me.button('Show the files').click()
  await me.button(/^a\.txt/).click()
  await me.button('Edit').last().click()
  await me.page.getByRole('textbox', { name: /^Content of/ }).fill('new')
  // The notice would go before a slow machine has looked at it.
  await me.page.evaluate(
    'globalThis.setTimeout = ((real) => (work, ms) => (ms === 4000 ? 0 : real(work, ms)))(setTimeout)'
  )
  await me.button(/^Save$/).click()
  await me.page.getByText('Saved “a.txt”.').waitFor()
  await expect.poll(() => me.page.evaluate(COVERED)).toBe('1 notices, 0 covered')
})

it('says on the buttons that there is no connection, and does nothing then', async () => {
  const { me } = await now().arrive()
  await me.button('Show the files').click()
  await me.button('Upload files').waitFor()
  expect(await me.button('Upload files').getAttribute('aria-disabled')).toBeNull()
  now().fake.gate = new Promise(() => {})
  now().fake.breakConnections()
  await me.page.getByText('The connection to the server is lost').waitFor()
  for (const name of ['Upload files', 'Download all files', 'Refresh the list of files']) {
    await expect.poll(() => me.button(name).getAttribute('aria-disabled')).toBe('true')
    await expect
      .poll(() => me.button(name).getAttribute('title'))
      .toBe('Not possible now: no connection to the server.')
  }
  await me.button('Refresh the list of files').click({ force: true })
  await me.page.getByRole('alert').getByText('Not possible now: no connection to the server.').waitFor()
  expect(await me.page.locator('[data-banner]').count()).toBe(1)
  await expect.poll(() => me.page.evaluate(COVERED)).toBe('1 notices, 0 covered')
  const isOff = (name: string | RegExp) => expect.poll(() => me.button(name).getAttribute('aria-disabled')).toBe('true')
  await me.button('New file or folder').click()
  await isOff(/^New file$/)
  await me.button('More for this session').click()
  for (const name of [/^Pin$/, /^Rename$/, /^Archive$/, 'Share as HTML file']) await isOff(name)
  await isOff('Import')
  await me.button('Settings').click()
  await isOff('Start a fresh history')
  await me.button(/^Choose a model/).click()
  await isOff('Refresh models')
})

// Seen before: the forms of the servers were sent, and failed.
it('says it on the buttons of the forms for servers too', async () => {
  const { me } = await now().arrive()
  await serveServers(me.page)
  await me.page.evaluate(`location.hash = '#/servers'`)
  await me.button('Add a server').click()
  await me.button('Fill in a form').click()
  await me.page.getByLabel('Name', { exact: true }).fill('typed')
  await me.page.getByLabel('Command', { exact: true }).fill('npx -y pkg')
  now().fake.gate = new Promise(() => {})
  now().fake.breakConnections()
  await expect.poll(() => me.button('Show what would run').getAttribute('aria-disabled')).toBe('true')
  await me.page.getByLabel('Command', { exact: true }).press('Enter')
  await me.page.getByText('Not possible now: no connection to the server.').waitFor()
  await expect.poll(() => me.page.getByLabel('Name', { exact: true }).inputValue()).toBe('typed')
  expect(now().offences).toEqual([])
})
