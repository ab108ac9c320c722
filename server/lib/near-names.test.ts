import { expect, it } from 'vitest'
import { didYouMean } from './near-names.ts'

it('suggests the names that are most like a wrong one', () => {
  const known = ['github', 'gitlab', 'filesystem', 'memory', 'x']
  expect(didYouMean('gihtub', known)).toBe(' Did you mean "github"?')
  expect(didYouMean('GitHub', known)).toBe(' Did you mean "github" or "gitlab"?')
  expect(didYouMean('gti', ['git', 'gcp'])).toBe(' Did you mean "git"?')
  expect(didYouMean('files', known)).toBe(' Did you mean "filesystem"?')
  expect(didYouMean('postgres', known)).toBe('')
  expect(didYouMean('', known)).toBe(' Did you mean "x"?')
  expect(didYouMean('a'.repeat(100_000), ['b'.repeat(100_000)])).toBe('')
})
