import { expect, it } from 'vitest'
import { errorWords, ruleWords } from './server-words.ts'

it('says of a tool without a rule what happens in the chat and what for outside clients', () => {
  expect(ruleWords({ verdict: 'ask', outside: 'allow' })).toBe('asks you in the chat; outside clients run it unasked')
  expect(ruleWords({ verdict: 'ask', outside: 'ask' })).toBe('asks you first')
  expect(ruleWords({ verdict: 'allow', outside: 'allow' })).toBe('runs without asking')
})

it('counts down the time until a server is retried', () => {
  const error = { message: 'The server "s" failed 3 times in a row and will be retried in 146 s. It ended.', at: 1000 }
  expect(errorWords(error, 1000)).toBe(error.message)
  expect(errorWords(error, 101_000)).toContain('retried in 46 s. It ended.')
  expect(errorWords(error, 999_000)).toContain('retried when it is needed. It ended.')
})
