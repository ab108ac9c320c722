import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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

// Checked: without its own policy, the frame has the policy of the page, which nothing may frame.
it('gives the frame that draws diagrams an origin of its own and no network, and changes nothing for the page', async () => {
  const root = temporaryFolder()
  mkdirSync(join(root, 'assets'))
  writeFileSync(join(root, 'index.html'), 'the page')
  writeFileSync(join(root, 'assets/diagram-frame-x_1.html'), '<script>one</script>')
  const server = Fastify()
  await registerSecurity(server, { instance, owners, addressOf: () => 'here', requestsPerMinute: 600 })
  await registerPage(server, root)
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
  expect(await policyAt('/')).toContain("frame-ancestors 'none'")
  await server.close()
})
