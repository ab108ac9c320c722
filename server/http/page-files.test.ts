import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { registerPage } from './page-files.ts'
import { registerSecurity } from './security.ts'

const owners = {
  ownerOf: async () => undefined,
  enter: async () => ({ cookie: 'x', isKnown: false }),
  isKnown: async () => true
}
const instance = { check: () => {}, checkLogin: () => {}, cookieFor: () => undefined, needsToken: false }

const FRAME = '<script>one</script>'

async function pageServer(files: Record<string, string | Buffer>) {
  const root = temporaryFolder()
  mkdirSync(join(root, 'assets'))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content)
  const server = Fastify()
  await registerSecurity(server, { instance, owners, addressOf: () => 'here', requestsPerMinute: 600 })
  await registerPage(server, root)
  return server
}

// Checked: without its own policy, the frame has the policy of the page, which nothing may frame.
it('gives the frame that draws diagrams an origin of its own and no network, and changes nothing for the page', async () => {
  const server = await pageServer({
    'index.html': 'the page',
    'assets/diagram-frame-x_1.html': FRAME,
    'assets/diagram-frame-y_2.html': FRAME,
    'assets/diagram-frame-y_2.html.gz': gzipSync(FRAME)
  })
  const policyAt = async (path: string) => String((await server.inject(path)).headers['content-security-policy'])
  const policy = (await policyAt('/assets/diagram-frame-x_1.html')).split(';')
  expect(policy).toEqual([
    "default-src 'none'",
    // printf one | openssl dgst -sha256 -binary | base64
    "script-src 'sha256-dpLDrTVAu4A8Ags67mbNiIcSMjTqDG5xQ8Ct1z/0Me0=' blob:",
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-scripts'
  ])
  const packed = await server.inject({
    url: '/assets/diagram-frame-y_2.html',
    headers: { 'accept-encoding': 'gzip' }
  })
  expect(packed.headers['content-encoding']).toBe('gzip')
  expect(String(packed.headers['content-security-policy']).split(';')).toEqual(policy)
  expect(await policyAt('/')).toContain("frame-ancestors 'none'")
  await server.close()
})

it('sends what the build has compressed, and lets browsers keep what has a hash in its name', async () => {
  const script = 'let x = 1\n'.repeat(200)
  const server = await pageServer({
    'index.html': 'the page',
    'index.html.br': brotliCompressSync('the page'),
    'assets/page-x_1.js': script,
    'assets/page-x_1.js.br': brotliCompressSync(script),
    'assets/page-x_1.js.gz': gzipSync(script),
    'assets/diagram-frame-x_1.html': FRAME,
    'favicon.svg': '<svg/>'
  })
  const get = async (url: string, accepted = '') => {
    const { headers, rawPayload } = await server.inject({ url, headers: { 'accept-encoding': accepted } })
    return { ...headers, bytes: rawPayload }
  }
  const type = expect.stringMatching(/\/javascript\b/)
  const immutable = { 'content-type': type, 'cache-control': 'public, max-age=31536000, immutable' }
  const brotli = await get('/assets/page-x_1.js', 'gzip, deflate, br')
  expect(brotli).toMatchObject({ ...immutable, 'content-encoding': 'br', bytes: brotliCompressSync(script) })
  const gzip = await get('/assets/page-x_1.js', 'gzip')
  expect(gzip).toMatchObject({ ...immutable, 'content-encoding': 'gzip' })
  const plain = await get('/assets/page-x_1.js')
  expect(plain).toMatchObject({ ...immutable, bytes: Buffer.from(script) })
  expect(plain['content-encoding']).toBeUndefined()
  for (const path of ['/', '/index.html', '/assets/diagram-frame-x_1.html'])
    expect(await get(path, 'br')).toMatchObject({ 'cache-control': 'no-cache' })
  // Seen before: without the server, the page had a broken image in place of its logo.
  expect(await get('/favicon.svg')).toMatchObject({ 'cache-control': 'public, max-age=86400' })
  expect((await get('/', 'br'))['content-type']).toMatch(/^text\/html/)
  await server.close()
})
