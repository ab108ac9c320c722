import { expect, it } from 'vitest'
import { ruleWords } from './server-words.ts'

it('says of a tool without a rule what happens in the chat and what for outside clients', () => {
  expect(ruleWords({ verdict: 'ask', outside: 'allow' })).toBe('asks you in the chat; outside clients run it unasked')
  expect(ruleWords({ verdict: 'ask', outside: 'ask' })).toBe('asks you first')
  expect(ruleWords({ verdict: 'allow', outside: 'allow' })).toBe('runs without asking')
})
