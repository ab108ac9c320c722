import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/fixtures/core.ts'

let dir = ''
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => discard(dir))

it('stops as it should when nobody reads its log any more', { timeout: 60_000 }, async () => {
  const env = {
    PATH: process.env.PATH,
    TMPDIR: process.env.TMPDIR,
    DOCKER_HOST: `unix://${dir}/none.sock`,
    PORT: '0',
    LLM_PROVIDER: 'demo'
  }
  const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, '../main.ts'), 'serve']
  const child = spawn(process.execPath, args, { cwd: dir, env, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  let said = ''
  for await (const chunk of child.stderr) {
    said += chunk
    if (said.includes('is at http')) break
  }
  // Leaving the loop has closed our end.
  expect(child.stderr.destroyed).toBe(true)
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})
