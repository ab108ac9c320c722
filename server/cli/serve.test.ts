import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { freePort } from '../../tests/support/free-port.ts'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'

let dir = ''
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => discard(dir))

it('shuts down normally when nobody reads its log any more', { timeout: 60_000 }, async () => {
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
  // The loop has closed our end.
  expect(child.stderr.destroyed).toBe(true)
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})

it('waits for a Redis that is not running yet, says so, and stops on Ctrl-C', { timeout: 60_000 }, async () => {
  const port = String(await freePort())
  const env = { PATH: process.env.PATH, PORT: '0', LLM_PROVIDER: 'demo', REDIS_URL: `redis://127.0.0.1:${port}` }
  const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, '../main.ts'), 'serve']
  const child = spawn(process.execPath, args, { cwd: dir, env, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  await vi.waitFor(() => expect(said).toMatch(/does not answer.*Trying again for \d+ s[\s\S]*Trying again for \d+ s/))
  child.kill('SIGINT')
  expect(await exited).toEqual([0, null])
  expect(said).toContain('Stopped before it was ready.')
  expect(said).not.toContain('until it does')
})

// Checked: with Node's recursive mkdir, neither of them ends.
it.skipIf(process.platform !== 'linux').each([
  ['serve', 'stderr', /The data folder \/proc\/nowhere\/data can't be locked \(ENOENT[^)]*\); check DATA_DIR/],
  [
    'doctor',
    'stdout',
    /^FAILS data +The data folder \/proc\/nowhere\/data can't be written \(ENOENT[^)]*\): check DATA_DIR/m
  ]
] as const)(
  '%s ends with a sentence where no data folder can be made',
  { timeout: 120_000 },
  (command, stream, sentence) => {
    const env = {
      PATH: process.env.PATH,
      TMPDIR: process.env.TMPDIR,
      DOCKER_HOST: `unix://${dir}/none.sock`,
      PORT: '0',
      LLM_PROVIDER: 'demo',
      DATA_DIR: '/proc/nowhere/data'
    }
    const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, '../main.ts'), command]
    const ended = spawnSync(process.execPath, args, {
      cwd: dir,
      env,
      timeout: 110_000,
      killSignal: 'SIGKILL',
      encoding: 'utf8'
    })
    expect(ended[stream]).toMatch(sentence)
    expect(ended.status).toBe(1)
  }
)
