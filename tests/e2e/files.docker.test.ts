import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, createApp } from '../../server/app/app.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { eventually } from '../support/eventually.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'

describe("a session's files over HTTP", () => {
  const dataDir = temporaryFolder()
  let app: App
  let base = ''
  let headers: Record<string, string> = {}

  beforeAll(async () => {
    const env = { DATA_DIR: dataDir, PORT: '0', LLM_PROVIDER: 'demo', WARM_POOL_SIZE: '1' }
    app = await createApp(loadSettings({ env }), silentLogger)
    await app.start()
    await eventually('ready', async () => (await fetch(`${app.url()}/readyz`)).ok, 120_000)
    const { sessionId, token } = (await (
      await fetch(`${app.url()}/api/sessions`, { method: 'POST' })
    ).json()) as Record<string, string>
    base = `${app.url()}/api/sessions/${sessionId}`
    headers = { 'x-session-token': String(token) }
  })

  afterAll(async () => {
    await app?.stop()
    discard(dataDir)
  })

  const file = (path: string) => `${base}/file?path=${encodeURIComponent(path)}`
  const put = (path: string, body: Buffer | string, more: Record<string, string> = {}) =>
    fetch(file(path), { method: 'PUT', headers: { ...headers, ...more }, body: body as string })

  // Checked: with `inline`, the header says `inline` instead of `attachment`.
  it('are uploaded, listed, and downloaded byte for byte, one by one and all together', async () => {
    const large = randomBytes(3 * 1024 * 1024 + 17)
    expect((await put('deep/data.bin', large)).status).toBe(204)
    expect((await put('odd name 💥.html', '<script>alert(1)</script>', { 'content-type': 'text/html' })).status).toBe(
      204
    )
    expect((await put('empty', '')).status).toBe(204)
    const { files } = (await (await fetch(`${base}/files`, { headers })).json()) as {
      files: { path: string; size: number }[]
    }
    expect(files.map(({ path }) => path).sort()).toEqual(['deep', 'deep/data.bin', 'empty', 'odd name 💥.html'])

    const down = await fetch(file('deep/data.bin'), { headers })
    expect(Buffer.from(await down.arrayBuffer()).equals(large)).toBe(true)
    const html = await fetch(file('odd name 💥.html'), { headers })
    expect(html.headers.get('content-type')).toBe('application/octet-stream')
    expect(html.headers.get('content-disposition')).toMatch(/^attachment/)

    const archive = Buffer.from(await (await fetch(`${base}/archive`, { headers })).arrayBuffer())
    const listed = execFileSync('tar', ['-tzf', '-'], { input: archive, encoding: 'utf8', env: { LANG: 'C.UTF-8' } })
    expect(listed).toContain('deep/data.bin')
    expect(
      execFileSync('tar', ['-xzOf', '-', 'deep/data.bin'], { input: archive, maxBuffer: 2 ** 26 }).equals(large)
    ).toBe(true)
  })

  it.each(['../etc/passwd', '/etc/passwd', 'deep/../../x', '', '\0'])(
    'refuse the path %j, up and down',
    async (path) => {
      expect((await fetch(file(path), { headers })).status).toBe(400)
      expect((await put(path, 'x')).status).toBe(400)
    }
  )

  it("are the owner's alone", async () => {
    for (const address of [`${base}/files`, file('empty'), `${base}/archive`, `${base}/export`, base]) {
      expect((await fetch(address)).status).toBe(403)
      expect((await fetch(address, { headers: { 'x-session-token': 'guess' } })).status).toBe(403)
    }
    const foreign = await fetch(file('empty'), { headers: { ...headers, origin: 'https://evil.example' } })
    expect(foreign.status).toBe(403)
  })

  // Checked: without the limit, the answer is 204 instead of 413.
  it('have a size limit', async () => {
    const refused = await put('huge', Buffer.alloc(10 * 1024 * 1024 + 1))
    expect(refused.status).toBe(413)
    expect(await refused.text()).toContain('the limit is 10 MB (MAX_UPLOAD_MB)')
  })

  it('leave no trace in the conversation, which can be taken away as Markdown and JSON', async () => {
    const json = (await (await fetch(`${base}/export?format=json`, { headers })).json()) as {
      conversation: { entries: unknown[] }
    }
    expect(json.conversation.entries).toEqual([])
    expect(await (await fetch(`${base}/export?format=md`, { headers })).text()).toMatch(/^# /)
  })
})
