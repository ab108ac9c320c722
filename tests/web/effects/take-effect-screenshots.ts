/** Pictures for the guide about approvals, of the real page: `node tests/web/effects/take-effect-screenshots.ts FOLDER`. */
import { join, resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { launchBrowser, visit } from '../../support/browser.ts'
import { FakeServer, type FakeSession } from '../fake-server.ts'
import { buildPage } from '../serve-page.ts'
import type { FakeFile } from './fake-effects.ts'

const folder = resolve(process.argv[2] ?? 'docs/pictures')
const BEFORE = 'import statistics\n\nprices = [3, 5, 8, 13]\nprint("mean", statistics.mean(prices))\n'
const AFTER =
  'import csv\nimport statistics\n\nwith open("prices.csv") as file:\n    prices = [float(row["price"]) for row in csv.DictReader(file)]\nprint("mean", statistics.mean(prices))\nprint("median", statistics.median(prices))\n'
const TEST = 'from report import median\n\ndef test_median():\n    assert median([1, 2, 9]) == 2\n'
const FILES: FakeFile[] = [
  { path: 'report.py', before: BEFORE, after: AFTER },
  { path: 'prices.csv', after: 'day,price\n1,3\n2,5\n3,8\n4,13\n' },
  { path: 'run.sh', after: '#!/bin/sh\nexec python3 report.py\n', mode: 0o755 },
  { path: 'tests/test_report.py', after: TEST },
  { path: 'docs/old-report.txt', before: 'mean 7.25\n' },
  { path: 'docs/usage.md', from: 'USAGE.md', before: '# Usage\n', after: '# Usage\n' }
]
const COMMAND = 'python3 report.py && python3 -m pytest -q'
const OUTPUT =
  'mean 7.25\nmedian 6.5\n..                                       [100%]\n2 passed in 0.03s\n[exit code 0, 412 ms]'
const ENDING = { exitCode: 0, signal: null, timedOut: false, durationMs: 412 }

function asked(session: FakeSession, mode: 'preview' | 'review'): void {
  session.append('mode:selected', { mode })
  session.append('user:message', {
    turnId: 't',
    text: 'Read the prices from a file and add the median. Run the tests.'
  })
  session.ask('t', [{ callId: 'c', name: 'execute_command', args: { command: COMMAND }, ahead: mode }])
}
function previewed(session: FakeSession): void {
  asked(session, 'preview')
  const changes = session.effects.put('call:c', FILES.slice(0, 2))
  const result = { isError: false, content: [{ type: 'text', text: OUTPUT }], ending: ENDING }
  session.append('tool:previewed', { callId: 'c', changes, hash: 'preview', result })
}
function reviewed(session: FakeSession): void {
  asked(session, 'review')
  session.append('tool:approval_resolved', { callId: 'c', approved: true, by: 'review' })
  session.append('tool:started', { callId: 'c' })
  const content = [{ type: 'text', text: OUTPUT }]
  session.append('tool:result', { callId: 'c', isError: false, content, ending: ENDING, isForked: true })
  session.append('agent:response', {
    turnId: 't',
    text: 'The report reads `prices.csv` now and prints the median too. The tests pass.'
  })
  session.append('review:opened', { reviewId: 'r', turnId: 't', changes: session.effects.put('review:r', FILES) })
  session.append('turn:end', { turnId: 't', reason: 'done' })
}
function recorded(session: FakeSession): void {
  reviewed(session)
  const { effects } = session
  effects.put('person:1', [{ path: 'prices.csv', after: 'day,price\n' }], { by: 'person' })
  effects.put('call:c', FILES.slice(0, 1), { by: 'call', callId: 'c' })
  const changes = effects.put('review:r', FILES, { by: 'review', reviewId: 'r' })
  session.append('review:resolved', { reviewId: 'r', hash: changes.hash, accept: 'all', by: 'human' })
  session.append('review:applied', { reviewId: 'r', changes, rejected: [], rejectedTotal: 0 })
  effects.put('revert:1', FILES.slice(4, 5), { by: 'revert', of: 'review:r', scope: 'one' })
}

await buildPage()
const browser = await launchBrowser()

async function picture(
  name: string,
  write: (session: FakeSession) => void,
  act: (page: Page) => Promise<void>
): Promise<void> {
  const server = await FakeServer.start()
  server.onOpen = write
  const one = await visit(browser, server.url, { deviceScaleFactor: 1.5, viewport: { width: 1360, height: 850 } })
  await one.page.getByRole('textbox', { name: 'Message' }).waitFor()
  await act(one.page)
  await one.page.getByText('Comparing…').first().waitFor({ state: 'hidden' })
  await one.page.screenshot({ path: join(folder, `${name}.png`) })
  await one.close()
  await server.stop()
}

await picture('preview', previewed, async (page) => {
  await page.locator('[data-approve][aria-disabled=false]').waitFor()
})
await picture('review', reviewed, async (page) => {
  await page.getByRole('button', { name: /^Review 6 files/ }).click()
  await page.getByRole('listbox').getByRole('option').nth(3).locator('[data-box]').click()
  await page.getByRole('listbox').getByRole('option').first().click()
  await page.getByRole('listbox').focus()
  await page.getByRole('textbox', { name: /Comment/ }).fill('Thanks! Leave the tests to me.')
  await page.getByText('csv.DictReader').waitFor()
  await page.getByRole('button', { name: 'Accept 5 of 6 files' }).and(page.locator('[aria-disabled=false]')).waitFor()
})
await picture('history', recorded, async (page) => {
  await page.getByRole('button', { name: 'Show the files' }).click()
  await page.getByRole('button', { name: 'History of the files' }).click()
  await page.getByRole('list', { name: 'Versions of the workspace' }).getByRole('listitem').first().waitFor()
})
await browser.close()
