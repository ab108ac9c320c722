/**
 * Random edits of random trees in real forks: keeping, undoing and rewinding give byte-identical trees. `RANDOM_TREES` tries more than the
 * few here. A smaller form without containers is in `random-trees.property.test.ts`.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { revertFiles } from '../../../server/sessions/chat/reverts.ts'
import { WorkspaceHistory } from '../../../server/sessions/files/workspace-history.ts'
import { startCore, type TestCore } from '../../support/start-core.ts'
import { discard } from '../../support/temporary-folder.ts'
import { textOf } from '../../support/text-of.ts'

const RUNS = Number(process.env.RANDOM_TREES ?? 4)
const RUN_MS = 60_000

/** As bash writes them; the last two are not UTF-8 and an own property of objects. */
const NAMES = ['a', 'b', "'d d'", "$'\\xc3\\xbc'", "$'\\xff\\xfe'", '__proto__']
const path = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
const text = fc.constantFrom('', '1', '2', 'longer text', 'x'.repeat(5000))
const parent = (p: string) => `mkdir -p ./${p}/..`
const step = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(path, text).map(([p, t]) => `${parent(p)}; printf %s '${t}' > ./${p}`) },
  { weight: 2, arbitrary: path.map((p) => `mkdir -p ./${p}`) },
  { weight: 2, arbitrary: path.map((p) => `rm -rf ./${p}`) },
  fc.tuple(path, path).map(([p, q]) => `mv -T ./${p} ./${q}`),
  fc.tuple(path, path).map(([p, q]) => `ln -sn ${p} ./${q}`),
  // A folder that its owner can't enter is left out: nobody can store what is in it.
  fc.tuple(path, fc.constantFrom(644, 600, 444)).map(([p, mode]) => `test -f ./${p} && chmod ${mode} ./${p}`),
  fc.tuple(path, fc.constantFrom(755, 700, 555)).map(([p, mode]) => `test -h ./${p} || chmod ${mode} ./${p}`),
  fc.tuple(path, text).map(([p, t]) => `printf %s '${t}' > ./${p} && rm ./${p}`)
)
const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 })
/** Names, types, modes, targets and contents of everything. */
const LIST =
  "find . -mindepth 1 \\( -type d -printf 'dir %m %p\\n' -o -type l -printf 'link %p %l\\n' -o -type f -printf 'file %m %s %p\\n' \\) | LC_ALL=C sort | cat -v; find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum | cat -v"

let core: TestCore
beforeAll(async () => {
  core = await startCore({ WARM_POOL_SIZE: '2' })
}, 120_000)
afterAll(async () => {
  await core.stop()
  await discard(core.dataDir)
})

class Session {
  readonly id = `trees-${randomUUID()}`
  readonly #history = new WorkspaceHistory(core.sessions)

  /** The tree in the sandbox, without the line about the command's end. */
  tree(): Promise<string> {
    return core.sessions.run(this.id, async (workspace) =>
      listed(await workspace.callUnrecorded('execute_command', { command: LIST }))
    )
  }

  /** Runs the steps in a fork and keeps what they did. Returns the tree as it was in the fork, and the version, if there is one. */
  async keep(steps: string[]): Promise<{ inFork: string; changeId: string | undefined }> {
    const callId = randomUUID()
    const command = `{ ${steps.join('\n')}\n} > /dev/null 2>&1; ${LIST}`
    const call = { callId, name: 'execute_command', args: { command }, onOutput: () => {} }
    const { result, changes } = await core.sessions.hold(this.id, ({ forks }) => forks.preview(call))
    const kept = await core.sessions.hold(this.id, ({ forks }) => forks.keep(callId, changes))
    return { inFork: listed(result), changeId: kept?.changeId }
  }

  async revert(changeId: string, scope: 'one' | 'since'): Promise<string | undefined> {
    const { hash } = await this.#history.revertPlan(this.id, changeId, scope)
    return (await core.sessions.hold(this.id, (hold) => revertFiles(hold, { changeId, scope, hash })))?.id
  }
}

const listed = (result: { content?: unknown }) => textOf(result).replace(/\n?\[exit code[^\n]*\]$/, '')

async function check(script: string[][], pick: number): Promise<void> {
  const session = new Session()
  try {
    const trees = [await session.tree()]
    const versions: string[] = []
    for (const steps of script) {
      const { inFork, changeId } = await session.keep(steps)
      expect(await session.tree(), 'kept').toBe(inFork)
      if (changeId === undefined) continue
      versions.push(changeId)
      trees.push(inFork)
    }
    const from = pick % Math.max(1, versions.length)
    const version = versions[from]
    if (version === undefined) return
    const rewind = await session.revert(version, 'since')
    expect(await session.tree(), 'rewound').toBe(trees[from])
    if (rewind === undefined) return
    await session.revert(rewind, 'one')
    expect(await session.tree(), 'the rewind undone').toBe(trees.at(-1))
  } finally {
    await core.sessions.destroy(session.id)
  }
}

it(
  'gives byte-identical trees in the fork, after keeping, after a rewind and after its undo',
  async () => {
    await fc.assert(fc.asyncProperty(rounds, fc.nat(), check), { numRuns: RUNS, endOnFailure: true })
  },
  RUNS * RUN_MS
)

it(
  'does so with a file of 50 MB that has no holes',
  () => check([['head -c 50000000 /dev/urandom > big'], ['mv big moved; printf x >> moved'], ['rm moved']], 1),
  3 * RUN_MS
)
