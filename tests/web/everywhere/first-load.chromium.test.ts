import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'

const WEB = join(import.meta.dirname, '../../../dist/web')
/** `npm run bench -- web` has the budget as browsers see it, with a better compression. */
const MAX_GZIP_BYTES = 120_000

const now = useFakePage()

// Checked: if `#app` is empty, nothing is shown here.
it('shows what happens before the script has loaded', async () => {
  const me = await now().open(undefined, { javaScriptEnabled: false })
  await me.page.getByRole('heading', { name: 'Preparing MCP Orchestrator…', level: 1 }).waitFor()
})

// Checked: with the cards of calls, they are larger than that; if one of them contains a schema of the contract, all of zod is loaded.
it('loads little before the page can be used', () => {
  const html = readFileSync(join(WEB, 'index.html'), 'utf8')
  const files = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, path = '']) => path)
  expect(files.length).toBeGreaterThan(1)
  const all = Buffer.concat(files.map((path) => readFileSync(join(WEB, path))))
  expect(all.includes('invalid_type')).toBe(false)
  expect(gzipSync(all).length).toBeLessThan(MAX_GZIP_BYTES)
})
