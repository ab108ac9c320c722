import { expect, it } from 'vitest'
import { fileEdits } from './file-edits.ts'

it.each([
  ['oldText', 'newText'],
  ['old_string', 'new_string'],
  ['old_str', 'new_str'],
  ['search', 'replace']
])('finds an edit in %s and %s', (before, after) => {
  expect(fileEdits({ path: 'a.ts', [before]: 'x', [after]: 'y', dryRun: true })).toEqual({
    edits: [{ path: 'a.ts', before: 'x', after: 'y' }],
    rest: { dryRun: true }
  })
})

it('finds lists of edits, of one file or of many', () => {
  expect(fileEdits({ path: 'a.ts', edits: [{ oldText: 'x', newText: 'y' }] })).toEqual({
    edits: [{ path: 'a.ts', before: 'x', after: 'y' }],
    rest: {}
  })
  expect(fileEdits({ files: [{ path: 'a', content: '1' }], branch: 'main' })).toEqual({
    edits: [{ path: 'a', before: null, after: '1' }],
    rest: { branch: 'main' }
  })
})

it('finds whole contents and insertions', () => {
  expect(fileEdits({ file_path: 'a', content: 'x' })?.edits).toEqual([{ path: 'a', before: null, after: 'x' }])
  expect(fileEdits({ path: 'a', insert_line: 3, new_str: 'x' })?.edits).toEqual([
    { path: 'a', before: '', after: 'x', line: 3 }
  ])
})

// Checked: if an edit's other fields are dropped, the list is empty.
it('leaves out nothing that it does not show', () => {
  const args = {
    path: 'a',
    edits: [
      { oldText: 'x', newText: 'y' },
      { oldText: 'x', newText: 'y', all: true }
    ]
  }
  expect(fileEdits(args)?.rest).toEqual({ edits: [{}, { all: true }] })
  expect(fileEdits({ path: 'a', file_path: 'b', content: 'x', contents: 'y' })?.rest).toEqual({
    file_path: 'b',
    contents: 'y'
  })
})

it.each([
  [{ query: 'x', limit: 3 }],
  [{ content: 'x' }],
  [{ path: 'a' }],
  [{ path: 'a', edits: [{ oldText: 'x', newText: 'y' }, 'rm -rf'] }],
  [{ path: 'a', edits: Array(51).fill({ oldText: 'x', newText: 'y' }) }],
  [JSON.parse('{"__proto__":{"path":"a","content":"x"}}')]
])('does not take %j for a change of files', (args) => {
  expect(fileEdits(args)).toBeUndefined()
})
