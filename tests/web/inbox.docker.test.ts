/** The inbox: a real stdio gateway asks, a real server shows it, a person in a real browser answers. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ApprovalsReply } from '../../contract/rest.ts'
import { child } from '../../server/connections/connections.fixture.ts'
import { launchBrowser, PHONE, visit } from '../support/browser.ts'
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts'
import { type Served, stopServers } from '../support/serve.ts'
import { textOf } from '../support/text-of.ts'
import { servePage } from './serve-page.ts'
import { WorkspacePage } from './workspace-page.ts'

const HOSTILE = 'evil<img src=x onerror=alert(1)>'
let server: Served
let browser: Browser
const running: GatewayProcess[] = []
beforeAll(async () => {
  server = await servePage()
  browser = await launchBrowser()
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})
afterAll(async () => {
  await browser.close()
  await stopServers()
})

async function gatewayOn(dataDir: string, env: Record<string, string> = {}) {
  const gateway = await startGateway(
    ({ dir }) => ({ [HOSTILE]: child('steady', [join(dir, 'count')], { approval: { '*': 'ask' } }) }),
    { env: { DATA_DIR: dataDir, ...env } }
  )
  running.push(gateway)
  const written = () => readFileSync(join(gateway.dir, 'count'), 'utf8')
  const progress: string[] = []
  const write = (message: string, signal?: AbortSignal) =>
    gateway.client
      .callTool(
        { name: 'execute', arguments: { server: HOSTILE, tool: 'write', params: { message } } },
        { ...(signal ? { signal } : {}), onprogress: (said) => progress.push(said.message ?? '') }
      )
      .then((result): Record<string, unknown> => ({ ...result }))
  return { gateway, write, written, progress }
}

const waiting = async () => ((await (await fetch(`${server.url}/api/approvals`)).json()) as ApprovalsReply).approvals
async function waitFor(size: number): Promise<ApprovalsReply['approvals']> {
  await expect.poll(waiting).toHaveLength(size)
  return waiting()
}
const answer = (id: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/api/approvals/${id}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers }
  })
const codeOf = async (reply: Response) => ((await reply.json()) as { error: { code: string } }).error.code

describe('the inbox', () => {
  it('shows a waiting call as it is, and runs it when a person approves it; by keyboard, on a phone', async () => {
    const { write, written, progress } = await gatewayOn(server.dataDir)
    const first = write('from the\u202e inbox')
    const { page, offences, close } = await visit(browser, server.url, { viewport: PHONE })
    await page.getByRole('button', { name: 'Waiting for you: 1' }).click()
    const card = page.locator('.inbox-card')
    await card.waitFor()
    await expect.poll(() => card.textContent()).toContain('evil<img src=x onerror=alert(1)>')
    await expect.poll(() => card.textContent()).toContain('from theU+202E inbox')
    await expect.poll(() => page.title()).toContain('(1) Needs your approval')
    await card.focus()
    await new WorkspacePage(page).approveByKeyboard()
    expect(textOf(await first)).toBe('written')
    expect(written()).toBe('from the\u202e inbox\n')
    expect(progress[0]).toContain('Waiting for approval')
    await page.getByText('Nothing waits for you').waitFor()

    const second = write('not this one')
    await card.getByRole('button', { name: 'Reject…' }).click()
    await card.getByRole('textbox').fill('Never on a Sunday.')
    await new WorkspacePage(page).enterReason()
    expect(textOf(await second)).toContain('Never on a Sunday.')
    expect(written()).toBe('from the\u202e inbox\n')
    expect(offences).toEqual([])
    await close()
  })

  // Checked: if any Origin is accepted, the answer is accepted.
  it('accepts one answer, for the card that was seen, from its own page, and only while the call waits', async () => {
    const { write, written, gateway } = await gatewayOn(server.dataDir)
    const call = write('once')
    const [card] = await waitFor(1)
    if (!card) throw new Error('no card')
    const yes = { approved: true, hash: card.hash }
    expect(await codeOf(await answer(card.id, { ...yes, hash: 'other' }))).toBe('stale')
    expect(await codeOf(await answer(card.id, { hash: card.hash }))).toBe('invalid_payload')
    expect(await codeOf(await answer(card.id, yes, { origin: 'http://elsewhere.example' }))).toBe('foreign_origin')
    const replies = await Promise.all([answer(card.id, yes), answer(card.id, { ...yes, approved: false })])
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 409])
    await call
    const late = await answer(card.id, yes)
    expect(await codeOf(late)).toBe('already_decided')

    const controller = new AbortController()
    const cancelled = write('twice', controller.signal)
    cancelled.catch(() => {})
    const [open] = await waitFor(1)
    controller.abort()
    await expect(cancelled).rejects.toThrow()
    await waitFor(0)
    expect(await codeOf(await answer(open?.id ?? '', { approved: true, hash: open?.hash }))).toBe('approval_gone')

    const dying = write('thrice')
    dying.catch(() => {})
    await waitFor(1)
    gateway.process.kill('SIGKILL')
    await expect.poll(waiting).toEqual([])
    expect((await readCount(written)).includes('twice')).toBe(false)
  })

  it('gives up after the time that was set', async () => {
    const { write } = await gatewayOn(server.dataDir, { APPROVAL_WAIT_SECONDS: '1' })
    const late = await write('late')
    expect(textOf(late)).toMatch(/Nobody answered within 1 s/)
    await waitFor(0)
  })
})

async function readCount(written: () => string): Promise<string> {
  try {
    return written()
  } catch {
    return ''
  }
}
