import { expect, it } from 'vitest'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import type { StoredChange } from '../../storage/checkpoint-store.ts'
import { filesOf, hashOf, partOf, summaryOf } from './changed-files.ts'
import { acceptedPart, conflictsOf, planChanges, refuseUnlisted } from './plan-changes.ts'
import { planRevert, revertedPart } from './revert-plan.ts'

const file = (path: string, text: string, mode = 0o644): WorkspaceEntry => {
  return { path, type: 'file', mode, mtimeMs: 1, size: text.length, hash: text.padEnd(64, '0') }
}
const dir = (path: string): WorkspaceEntry => ({ path, type: 'dir', mode: 0o755, mtimeMs: 1 })
const change = (path: string, before: string | null, after: string | null): StoredChange => {
  return { path, before: before === null ? null : file(path, before), after: after === null ? null : file(path, after) }
}
const madeDir = (path: string): StoredChange => ({ path, before: null, after: dir(path) })
const goneDir = (path: string): StoredChange => ({ path, before: dir(path), after: null })
const workspace = (...entries: WorkspaceEntry[]) => new Map(entries.map((entry) => [entry.path, entry]))

it('shows renames once, and folders only where they are the change', () => {
  const files = filesOf([
    change('old/a', 'same', null),
    change('new/b', null, 'same'),
    madeDir('new'),
    goneDir('old'),
    madeDir('empty'),
    change('x', 'x', 'y'),
    { path: 'script', before: file('script', 's'), after: file('script', 's', 0o755) },
    change('nothing1', '', null),
    change('nothing2', null, '')
  ])
  expect(files.map(({ path, from }) => (from ? `${from} → ${path}` : path))).toEqual([
    'empty',
    'old/a → new/b',
    'nothing1',
    'nothing2',
    'script',
    'x'
  ])
  const many = Array.from({ length: 150 }, (_, i) => change(`f${i}`, null, `${i}`))
  expect(summaryOf({ id: 'v', changes: many })).toMatchObject({ changeId: 'v', total: 150, hash: hashOf(many) })
  expect(summaryOf({ id: 'v', changes: many }).files).toHaveLength(100)
})

it('takes the folders and the other side of a rename with an accepted file', () => {
  const changes = [
    change('old/a', 'same', null),
    goneDir('old'),
    madeDir('n'),
    madeDir('n/m'),
    change('n/m/b', null, 'same')
  ]
  expect(partOf(changes, ['n/m/b'])).toEqual(changes)
  const two = [madeDir('n'), change('n/a', null, 'a'), change('n/b', null, 'b')]
  expect(partOf(two, ['n/b']).map(({ path }) => path)).toEqual(['n', 'n/b'])
  expect(partOf(two, [])).toEqual([])
})

// Seen before: a new folder with files in it was not listed, whatever its mode, and its mode came with the first accepted file.
it('lists a new folder with an unusual mode, which is accepted by itself', () => {
  const open = { path: 'n', before: null, after: { ...dir('n'), mode: 0o777 } } as StoredChange
  const changes = [open, madeDir('n/m'), change('n/m/a', null, 'a')]
  expect(filesOf(changes).map(({ path }) => path)).toEqual(['n', 'n/m/a'])
  expect(partOf(changes, ['n', 'n/m/a'])).toEqual(changes)
  // The folder is needed, but its mode was not accepted.
  expect(partOf(changes, ['n/m/a'])).toEqual([{ ...open, after: dir('n') }, ...changes.slice(1)])
  expect(partOf(changes, ['n'])).toEqual([open])
})

// Seen before: whoever named the folder of a rejected file got it into the workspace, though no list had shown it.
it('refuses a decision that names a folder which is not listed', () => {
  const changes = [madeDir('n'), change('n/a', null, 'a'), change('b', null, 'b')]
  expect(filesOf(changes).map(({ path }) => path)).toEqual(['b', 'n/a'])
  const notShown = expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining('"n"') })
  expect(() => refuseUnlisted(workspace(), changes, ['n', 'b'])).toThrow(notShown)
  expect(() => refuseUnlisted(workspace(), changes, { allExcept: ['n', 'n/a'] })).toThrow(notShown)
  refuseUnlisted(workspace(), changes, { allExcept: ['n/a'] })
  expect(acceptedPart(workspace(), changes, { allExcept: ['n/a'] })).toEqual([changes[2]])
})

// Seen before: a conflict was reported at a path that nobody had changed, and no choice for it was shown.
it('takes a path that changes between file and folder only with what is in the folder', () => {
  const together = expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(/"d.*"d/) })
  const intoFolder = [{ path: 'd', before: file('d', 'x'), after: dir('d') }, change('d/x', null, 'new')]
  expect(() => partOf(intoFolder, ['d/x'])).toThrow(together)
  expect(partOf(intoFolder, ['d'])).toEqual(intoFolder.slice(0, 1))
  expect(partOf(intoFolder, ['d', 'd/x'])).toEqual(intoFolder)
  const intoFile = [{ path: 'd', before: dir('d'), after: file('d', 'x') }, change('d/x', 'old', null)]
  expect(() => partOf(intoFile, ['d'])).toThrow(together)
  expect(partOf(intoFile, ['d/x'])).toEqual(intoFile.slice(1))
  // The folder moved, and a link leads to its new place.
  const link: StoredChange = {
    path: 'd',
    before: dir('d'),
    after: { path: 'd', type: 'link', target: 'e', mtimeMs: 1 }
  }
  const moved = [link, change('d/x', 'same', null), madeDir('e'), change('e/x', null, 'same')]
  expect(() => partOf(moved, ['d'])).toThrow(together)
  expect(partOf(moved, ['e/x'])).toEqual(moved.slice(1))
  expect(partOf(moved, ['d', 'e/x'])).toEqual(moved)
})

// Seen before: the person's file was replaced, although they chose to leave it.
it('replaces nothing that the person chose to leave, if a path changes between file and folder', () => {
  const together = expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(/"d.*"d/) })
  const intoFolder = [{ path: 'd', before: file('d', 'x'), after: dir('d') }, change('d/x', null, 'new')]
  const mine = workspace(file('d', 'mine'))
  expect(() => planChanges(mine, intoFolder, { choices: { d: 'workspace' } })).toThrow(together)
  expect(planChanges(mine, intoFolder, { choices: { d: 'fork' } }).changes.map(({ path }) => path)).toEqual([
    'd',
    'd/x'
  ])
  const intoFile = [{ path: 'd', before: dir('d'), after: file('d', 'x') }, change('d/x', 'old', null)]
  const inside = workspace(dir('d'), file('d/x', 'mine'))
  expect(() => planChanges(inside, intoFile, { choices: { 'd/x': 'workspace' } })).toThrow(together)
})

// Seen before: the conflict was at a folder that is not listed, so nobody could choose, and the changes could never be applied.
it('lists a folder that is in conflict, so that a version of it can be chosen', () => {
  const made = [madeDir('d'), change('d/x', null, 'new')]
  const mine = workspace(file('d', 'mine'))
  const pathsIn = (now: typeof mine, changes: StoredChange[]) =>
    filesOf(changes, conflictsOf(now, changes)).map(({ path, conflict }) => `${path}${conflict ? '!' : ''}`)
  expect(pathsIn(mine, made)).toEqual(['d!', 'd/x'])
  expect(planChanges(mine, made, { choices: { d: 'fork' } }).changes.map(({ path }) => path)).toEqual(['d', 'd/x'])
  expect(() => planChanges(mine, made, { choices: { d: 'workspace' } })).toThrow(
    expect.objectContaining({ code: 'invalid_request' })
  )
  expect(pathsIn(workspace(), made)).toEqual(['d/x'])
  const gone = [goneDir('d'), change('d/x', 'old', null)]
  const open = workspace({ ...dir('d'), mode: 0o777 } as WorkspaceEntry, file('d/x', 'old'))
  expect(pathsIn(open, gone)).toEqual(['d!', 'd/x'])
  const left = planChanges(open, gone, { choices: { d: 'workspace' } })
  expect(left.changes.map(({ path }) => path)).toEqual(['d/x'])
  // The person made the same folder, with another mode: their files and those of the fork are both there.
  const both = planChanges(open, made.slice(0, 1).concat(change('d/y', null, 'new')), { choices: { d: 'workspace' } })
  expect(both.changes.map(({ path }) => path)).toEqual(['d/y'])
})

it('applies nothing where both sides changed a file, until the person has chosen', () => {
  const changes = [
    change('a', 'base', 'fork'),
    change('b', 'base', 'fork'),
    change('c', 'base', 'both'),
    change('d', null, 'd')
  ]
  const now = workspace(file('a', 'base'), file('b', 'person'), file('c', 'both'))
  expect([...conflictsOf(now, changes)]).toMatchObject([['b', { now: file('b', 'person') }]])
  expect(() => planChanges(now, changes)).toThrow(expect.objectContaining({ code: 'changes_conflict' }))
  const paths = (choice: 'fork' | 'workspace') =>
    planChanges(now, changes, { choices: { b: choice } }).changes.map(({ path }) => path)
  expect(paths('workspace')).toEqual(['a', 'd'])
  expect(paths('fork')).toEqual(['a', 'b', 'd'])
  const plan = planChanges(now, changes, { choices: { b: 'fork' } })
  // The version keeps the file that the workspace had, so it can be restored.
  expect(plan.changes.find(({ path }) => path === 'b')?.before).toEqual(file('b', 'person'))
  expect(plan.present.map(({ path }) => path)).toEqual(['c'])
  expect(filesOf(changes, conflictsOf(now, changes)).find(({ conflict }) => conflict)).toMatchObject({ path: 'b' })
})

it('is a conflict if a file is where a folder should be, or the other way round', () => {
  const intoFile = [change('d/x', null, 'x')]
  const blocked = workspace(file('d', 'person'))
  expect([...conflictsOf(blocked, intoFile)]).toMatchObject([['d/x', { now: file('d', 'person') }]])
  const forced = planChanges(blocked, intoFile, { choices: { 'd/x': 'fork' } }).changes
  expect(forced).toMatchObject([
    { path: 'd/x', after: { type: 'file' } },
    { path: 'd', before: file('d', 'person'), after: { type: 'dir' } }
  ])
  const overFolder: StoredChange[] = [
    { path: 'd', before: dir('d'), after: file('d', 'now a file') },
    goneDir('d/sub'),
    change('d/old', 'old', null)
  ]
  const full = workspace(dir('d'), dir('d/sub'), file('d/old', 'old'), file('d/sub/new', 'person'))
  expect([...conflictsOf(full, overFolder).keys()]).toEqual(['d'])
  const replaced = planChanges(full, overFolder, { choices: { d: 'fork' } }).changes
  expect(replaced.map(({ path, after }) => [path, after?.type]).toSorted()).toEqual([
    ['d', 'file'],
    ['d/old', undefined],
    ['d/sub', undefined],
    ['d/sub/new', undefined]
  ])
  expect(replaced.find(({ path }) => path === 'd/sub/new')?.before).toEqual(file('d/sub/new', 'person'))
})

// Checked: without `checkSeen`, every one of these plans replaces what nobody has seen.
it('counts a choice only for what the person has seen there', () => {
  const shownOf = (entries: ReturnType<typeof workspace>, changes: StoredChange[]) =>
    Object.fromEntries(
      filesOf(changes, conflictsOf(entries, changes)).flatMap(({ path, conflict }) =>
        conflict ? [[path, conflict.seen]] : []
      )
    )
  const cases: [StoredChange[], ReturnType<typeof workspace>, ReturnType<typeof workspace>, string][] = [
    [[change('a', 'base', 'fork')], workspace(file('a', 'mine')), workspace(file('a', 'swapped')), 'a'],
    [[change('a', 'base', 'fork')], workspace(), workspace(file('a', 'swapped')), 'a'],
    [[change('d/x', null, 'x')], workspace(file('d', 'mine')), workspace(file('d', 'swapped')), 'd/x'],
    [
      [{ path: 'd', before: dir('d'), after: file('d', 'a file') }],
      workspace(dir('d'), file('d/one', '1')),
      workspace(dir('d'), file('d/one', '1'), file('d/two', '2')),
      'd'
    ],
    // A rename, with the swap at its other end.
    [
      [change('old', 'same', null), change('new', null, 'same')],
      workspace(file('old', 'mine'), file('new', 'mine')),
      workspace(file('old', 'swapped'), file('new', 'mine')),
      'new'
    ]
  ]
  for (const [changes, shown, swapped, path] of cases) {
    const seen = shownOf(shown, changes)
    for (const version of ['fork', 'workspace'] as const) {
      const choices = { [path]: version }
      expect(planChanges(shown, changes, { choices, seen })).toBeDefined()
      expect(() => planChanges(swapped, changes, { choices, seen })).toThrow(expect.objectContaining({ code: 'stale' }))
      expect(() => planChanges(shown, changes, { choices, seen: {} })).toThrow(
        expect.objectContaining({ code: 'stale' })
      )
    }
  }
})

it('keeps a folder with something new in it, and makes folders that are missing', () => {
  const gone = planChanges(workspace(dir('d'), file('d/a', 'a'), file('d/new', 'n')), [
    goneDir('d'),
    change('d/a', 'a', null)
  ])
  expect(gone.changes.map(({ path }) => path)).toEqual(['d/a'])
  const made = planChanges(workspace(), [change('p/q/x', null, 'x')])
  expect(made.changes.map(({ path }) => path).toSorted()).toEqual(['p', 'p/q', 'p/q/x'])
})

it('plans to undo one version or all since, and says what was changed since', () => {
  const version = (id: string, changes: StoredChange[]) =>
    [id, { id, kind: 'version', at: 1, about: { by: 'person' }, changes }] as const
  const saved = {
    entries: workspace(file('a', '3'), file('b', '1')),
    changeSets: new Map([
      version('v1', [change('a', null, '1'), change('b', null, '1')]),
      version('v2', [change('a', '1', '2'), change('c', null, '1')]),
      version('v3', [change('a', '2', '3'), change('c', '1', null)])
    ])
  }
  const one = planRevert(saved, 'v2', 'one')
  expect(one.files).toMatchObject([{ path: 'a', conflict: { now: { type: 'file' } } }])
  const since = planRevert(saved, 'v2', 'since')
  expect(since.changes).toEqual([change('a', '3', '1')])
  expect(since.files[0]?.conflict).toBeUndefined()
  expect(revertedPart(planRevert(saved, 'v1', 'since'), ['b'])).toEqual([change('b', '1', null)])
  const later = { ...saved, entries: workspace(file('a', '4'), file('b', '1')) }
  expect(planRevert(later, 'v2', 'one').hash).not.toBe(one.hash)
  expect(() => planRevert(saved, 'v9', 'one')).toThrow(expect.objectContaining({ code: 'unknown_version' }))
})

it('says where the other version of a conflict is', () => {
  const renamed = [change('old', 'same', null), change('new', null, 'same')]
  const conflictAt = (changes: StoredChange[], ...now: WorkspaceEntry[]) =>
    filesOf(changes, conflictsOf(workspace(...now), changes)).map(({ path, conflict }) => [
      path,
      conflict?.now,
      conflict?.at
    ])
  const side = (text: string) => ({ type: 'file', mode: 0o644, size: text.length, hash: text.padEnd(64, '0') })
  expect(conflictAt(renamed, file('old', 'mine'))).toEqual([['new', side('mine'), 'old']])
  expect(conflictAt(renamed, file('old', 'same'), file('new', 'mine'))).toEqual([['new', side('mine'), undefined]])
  expect(conflictAt([change('d/x', null, 'x')], file('d', 'mine'))).toEqual([['d/x', side('mine'), 'd']])
})

// Seen before: the file at the old path was deleted with the choice for the new one, and nobody had seen it.
it('shows both files that a rename would replace, and takes a choice for each', () => {
  const renamed = [change('old', 'same', null), change('new', null, 'same')]
  const entries = workspace(file('old', 'mine'), file('new', 'also mine'))
  const files = filesOf(renamed, conflictsOf(entries, renamed))
  expect(files.map(({ path, from, conflict }) => [path, from, conflict?.now])).toMatchObject([
    ['new', undefined, { size: 9 }],
    ['old', undefined, { size: 4 }]
  ])
  const seenConflicts = Object.fromEntries(files.map(({ path, conflict }) => [path, conflict?.seen ?? '']))
  const decide = (choices: Record<string, 'fork' | 'workspace'>, seen = seenConflicts) =>
    planChanges(entries, renamed, { choices, seen }).changes.map(({ path }) => path)
  expect(decide({ new: 'fork', old: 'workspace' })).toEqual(['new'])
  expect(decide({ new: 'fork', old: 'fork' }).toSorted()).toEqual(['new', 'old'])
  expect(() => decide({ new: 'fork' }, { new: seenConflicts.new ?? '' })).toThrow(/"old" has changed again/)
})

// Seen before: the conflict said that there is a folder, and the file that the person had put into it was deleted unseen.
it('names what is new in a folder that a file would replace', () => {
  const changes: StoredChange[] = [
    { path: 'd', before: dir('d'), after: file('d', 'a file') },
    change('d/old', 'x', null)
  ]
  const entries = workspace(
    dir('d'),
    file('d/old', 'x'),
    ...Array.from({ length: 30 }, (_, i) => file(`d/new${i}`, 'mine'))
  )
  const [shown] = filesOf(changes, conflictsOf(entries, changes))
  expect(shown).toMatchObject({ path: 'd', conflict: { now: { type: 'dir' }, insideTotal: 30 } })
  expect(shown?.conflict?.inside).toHaveLength(20)
  expect(shown?.conflict?.inside).not.toContain('d/old')
})
