import { expect, it } from 'vitest'
import { verdictWords } from './server-words.ts'

it('says of a tool without a rule what happens in the chat and what for outside clients', () => {
  expect(verdictWords({ verdict: 'ask', outside: 'allow' })).toBe(
    'asks you in the chat; outside clients run it unasked'
  )
  expect(verdictWords({ verdict: 'ask', outside: 'ask' })).toBe('asks you first')
  expect(verdictWords({ verdict: 'allow', outside: 'allow' })).toBe('runs without asking')
})
