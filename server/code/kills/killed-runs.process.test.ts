/** Kills the process that runs a program with SIGKILL, at every event of its log. Two others go on, with the same store. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { RunIndex } from '../run-index.ts'
import { openRuns, sentIn } from './killed-run.fixture.ts'

const MAIN = fileURLToPath(new URL('killed-run-main.fixture.ts', import.meta.url))

type Opened = Awaited<ReturnType<typeof openRuns>>

/** Approves what certainly did not run, until `isOver`. What may have run before is repeated only if it did not. */
async function person({ inbox }: Opened, dir: string, isOver: () => Promise<boolean>): Promise<void> {
  while (!(await isOver())) {
    for (const { id, hash, warning, args } of await inbox.open()) {
      const approved = warning === undefined || !sentIn(dir).includes(String(args.to))
      await inbox.answer(id, hash, { approved }).catch(() => {})
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Returns how many events there were, if it was not killed. */
async function killedAt(dieAt: number, when: 'before' | 'after'): Promise<number> {
  const dir = temporaryFolder()
  const page = await openRuns(dir)
  await page.runs.close()
  const victim = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN, dir, String(dieAt), when], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const [said] = await Promise.all([
    text(victim.stdout),
    person(page, dir, async () => victim.exitCode !== null || victim.signalCode !== null)
  ])
  if (victim.exitCode === null && victim.signalCode === null) await once(victim, 'exit')
  const where = `killed ${when} event ${dieAt}`
  const index = new RunIndex(page.store.keyValues)
  const heirs = await Promise.all([openRuns(dir), openRuns(dir)])
  // Killed with its first event, it has no program: its client was never told of it, and starts it again.
  const isOver = async () => (await index.list()).every(({ entry }) => entry.status === 'ended')
  await person(page, dir, isOver)
  const [run] = await index.list()
  const sent = sentIn(dir)
  expect(new Set(sent).size, where).toBe(sent.length)
  const hasProgram =
    run && (await page.store.events.read(`code-run:${run.runId}`, { limit: 1 }))[0]?.type === 'run:created'
  if (run && hasProgram) {
    expect(sent, where).toEqual(['x@example.test', 'y@example.test', expect.stringMatching(/^chief\d+$/)])
    const [heir] = heirs
    const { state } = await heir.runs.report(run.runId, { owner: 'local', calls: heir.calls })
    expect(state.end, where).toMatchObject({ ok: true, value: { a: 'x@example.test', b: 'y@example.test' } })
    expect(state.logs, where).toEqual(['two'])
  } else expect(sent, where).toEqual([])
  expect(await page.inbox.open(), where).toEqual([])
  for (const each of heirs) await each.runs.close()
  for (const each of [page, ...heirs]) await each.store.close()
  discard(dir)
  return victim.signalCode === null ? Number(said.trim().split('\n').at(-1)) : 0
}

// Checked: if a call that was under way is sent again without asking, a write is there twice.
it('sends each write once and ends with the same value, wherever its process is killed', async () => {
  const events = await killedAt(Number.MAX_SAFE_INTEGER, 'before')
  expect(events).toBeGreaterThan(15)
  for (let at = 1; at <= events; at++) {
    await killedAt(at, 'before')
    await killedAt(at, 'after')
  }
}, 600_000)
