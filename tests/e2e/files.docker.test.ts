import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, createApp } from '../../server/app/app.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { eventually } from '../support/eventually.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'
import { pngOf } from '../support/tiny-png.ts'

describe("a session's files over HTTP", () => {
  const dataDir = temporaryFolder()
  let app: App
  let base = ''
  let headers: Record<string, string> = {}

  async function start(): Promise<App> {
    const env = { DATA_DIR: dataDir, PORT: '0', LLM_PROVIDER: 'demo', WARM_POOL_SIZE: '1' }
    const started = await createApp(loadSettings({ env }), silentLogger)
    await started.start()
    await eventually('ready', async () => (await fetch(`${started.url()}/readyz`)).ok, 120_000)
    return started
  }

  beforeAll(async () => {
    app = await start()
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

  const post = (route: 'folder' | 'move', body: object) =>
    fetch(`${base}/${route}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
  const remove = (path: string) => fetch(file(path), { method: 'DELETE', headers })
  const listed = async (folder: string) => {
    const reply = await fetch(`${base}/files?path=${encodeURIComponent(folder)}`, { headers })
    return ((await reply.json()) as { files: { path: string }[] }).files.map(({ path }) => path)
  }
  const codeOf = async (reply: Response) => ((await reply.json()) as { error: { code: string } }).error.code

  it('are listed one folder at a time', async () => {
    expect(await listed('')).toEqual(['deep', 'empty', 'odd name 💥.html'])
    expect(await listed('deep')).toEqual(['deep/data.bin'])
  })

  it('are moved, deleted and put into new folders, never over anything else', async () => {
    expect((await post('folder', { path: 'made/inside' })).status).toBe(204)
    expect(await codeOf(await post('folder', { path: 'made' }))).toBe('file_exists')
    expect((await put('made/a.txt', 'a')).status).toBe(204)
    expect((await put('made/b.txt', 'b')).status).toBe(204)
    expect(await codeOf(await post('move', { from: 'made/a.txt', to: 'made/b.txt' }))).toBe('file_exists')
    expect((await post('move', { from: 'made/a.txt', to: 'made/inside/c.txt' })).status).toBe(204)
    expect(await codeOf(await post('move', { from: 'made', to: 'made/inside/made' }))).toBe('file_refused')
    expect((await post('move', { from: 'made', to: 'kept' })).status).toBe(204)
    expect(await listed('kept')).toEqual(['kept/b.txt', 'kept/inside'])
    expect(await (await fetch(file('kept/inside/c.txt'), { headers })).text()).toBe('a')
    expect((await remove('kept')).status).toBe(204)
    expect(await codeOf(await remove('kept'))).toBe('file_refused')
    for (const path of ['.', '..', '../etc', '/etc/passwd', 'deep/..', '\0'])
      expect((await remove(path)).status).toBe(400)
    expect(await listed('')).toEqual(['deep', 'empty', 'odd name 💥.html'])
  })

  it('are replaced only as they were when they were opened', async () => {
    expect((await put('text.txt', 'first', { 'if-none-match': '*' })).status).toBe(204)
    expect(await codeOf(await put('text.txt', 'again', { 'if-none-match': '*' }))).toBe('file_exists')
    const opened = (await fetch(file('text.txt'), { headers })).headers.get('etag') ?? ''
    expect((await put('text.txt', 'second', { 'if-match': opened })).status).toBe(204)
    expect(await codeOf(await put('text.txt', 'third', { 'if-match': opened }))).toBe('file_changed')
    expect((await remove('text.txt')).status).toBe(204)
    expect(await codeOf(await put('text.txt', 'third', { 'if-match': opened }))).toBe('file_changed')
  })

  it('are changed after the sandbox is gone too, with everything else as it was', async () => {
    const { pathname } = new URL(base)
    await app.stop()
    app = await start()
    base = `${app.url()}${pathname}`
    expect((await post('move', { from: 'deep/data.bin', to: 'again/moved.bin' })).status).toBe(204)
    await app.stop()
    app = await start()
    base = `${app.url()}${pathname}`
    expect(await listed('again')).toEqual(['again/moved.bin'])
    expect(await listed('')).toEqual(['again', 'deep', 'empty', 'odd name 💥.html'])
  })

  it('are recorded when a person changes them, in the conversation, which can be taken away', async () => {
    const json = (await (await fetch(`${base}/export?format=json`, { headers })).json()) as {
      conversation: { entries: { message?: string }[] }
    }
    const [entry] = json.conversation.entries
    expect(entry?.message).toMatch(/^You uploaded deep\/data\.bin, /)
    expect(await (await fetch(`${base}/export?format=md`, { headers })).text()).toMatch(/^# /)
  })

  it('of the conversation are read by its owner alone, survive a restart, and go with the session', async () => {
    const image = pngOf(30, 20)
    const added = await fetch(`${base}/attachments`, { method: 'POST', headers, body: new Uint8Array(image) })
    const { id } = (await added.json()) as { id: string }
    const { pathname } = new URL(base)
    await app.stop()
    app = await start()
    base = `${app.url()}${pathname}`
    const got = await fetch(`${base}/attachments/${id}`, { headers })
    expect(Buffer.from(await got.arrayBuffer()).equals(image)).toBe(true)
    expect(got.headers.get('content-type')).toBe('image/png')
    expect(got.headers.get('x-content-type-options')).toBe('nosniff')
    expect(got.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
    for (const stranger of [{}, { 'x-session-token': 'a'.repeat(43) }])
      expect((await fetch(`${base}/attachments/${id}`, { headers: stranger })).status).toBe(403)
    const stored = () => readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((path) => path.includes(id))
    expect(stored()).toHaveLength(1)
    expect((await fetch(base, { method: 'DELETE', headers })).status).toBe(204)
    expect(stored()).toEqual([])
  })
})
