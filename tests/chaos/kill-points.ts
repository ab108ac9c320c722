/** Places at which a server can be made to kill itself, as planted bugs: one for each step of running ahead and of applying what was decided. */
import type { PlantedBug } from './planted-bugs.ts'

interface KillPoint extends Omit<PlantedBug, 'by' | 'caught'> {
  /** The code before and after the death, in place of `replace`. */
  before?: string
  after?: string
}

const FORK = '/server/sessions/sandboxes/forks/session-fork.ts'
const FILES = '/server/sessions/sandboxes/workspace-files.ts'
const CHAT = '/server/sessions/chat/chat.ts'

export const KILL_POINTS: Record<string, KillPoint> = {
  'fork: a container is about to become one': {
    file: FORK,
    replace: 'const fork = await this.#create(',
    after: 'const fork = await this.#create('
  },
  'fork: it is there': { file: FORK, replace: '      this.#fork = fork\n', before: '      this.#fork = fork\n' },
  'run: the call has ended': {
    file: FORK,
    replace: 'this.#mayRun = wasRunning ||',
    after: 'this.#mayRun = wasRunning ||'
  },
  'diff: the changes are known': {
    file: FORK,
    replace: 'return { changes: this.entries.changes, skipped }',
    after: 'return { changes: this.entries.changes, skipped }'
  },
  'store: only the content is stored': {
    file: '/server/storage/checkpoints/file-checkpoint.ts',
    replace: 'await this.#folder.sync()\n      if (this.#manifest)',
    before: 'await this.#folder.sync()\n',
    after: 'if (this.#manifest)'
  },
  'store: the changes are stored': {
    file: '/server/sessions/sandboxes/forks/fork-changes.ts',
    replace: 'return summaryOf({ id, changes: linked })',
    after: 'return summaryOf({ id, changes: linked })'
  },
  'decide: a kept preview is not recorded yet': {
    file: CHAT,
    replace: 'if (await this.#once(sessionId, events)) return call\n',
    after: 'if (await this.#once(sessionId, events)) return call\n'
  },
  'decide: an accepted review is not recorded yet': {
    file: CHAT,
    replace: 'if (!(await this.#once(sessionId, [decision]))) throw reviewDecided()',
    after: 'if (!(await this.#once(sessionId, [decision]))) throw reviewDecided()'
  },
  'apply: nothing is written': {
    file: FILES,
    replace: 'await this.#write(plan.changes, this.#checkpoint.entries, false).catch',
    after: 'await this.#write(plan.changes, this.#checkpoint.entries, false).catch'
  },
  'apply: only the deletions are made': {
    file: FILES,
    replace: 'await writeEntries(batch, this.#checkpoint, after, [...folders.values()])\n    const [failed]',
    before: 'if (!isOwnVersion) await batch.finish()\n    if (!isOwnVersion) ',
    after: 'await writeEntries(batch, this.#checkpoint, after, [...folders.values()])\n    const [failed]'
  },
  'apply: all is written': {
    file: FILES,
    replace: 'const save = () => this.#commitApplied(plan, input)',
    after: 'const save = () => this.#commitApplied(plan, input)'
  },
  'apply: all is saved': {
    file: FILES,
    replace: '{ put, deleted, drop, keep: made ? [...keep, made] : keep })\n    return made',
    before: '{ put, deleted, drop, keep: made ? [...keep, made] : keep })\n    ',
    after: 'return made'
  }
}

/** Dies when it comes here once more than PASSES says. */
const DIE = `if ((globalThis.passes = (globalThis.passes ?? 0) + 1) > Number(process.env.PASSES ?? 0)) process.kill(process.pid, 'SIGKILL')`

export function killingBug({ file, replace, before = '', after = '' }: KillPoint): Omit<PlantedBug, 'caught'> {
  return { file, replace, by: `${before}${DIE}\n${after}` }
}
