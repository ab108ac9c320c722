import { expect, it } from 'vitest'
import { barWords } from './waiting-words.ts'

it.each([
  [{ calls: 1, previews: 0, questions: 0 }, '1 tool call needs your approval'],
  [{ calls: 0, previews: 2, questions: 0 }, '2 previews need your decision'],
  [{ calls: 0, previews: 0, questions: 1 }, '1 question of an MCP server waits for your answer'],
  [{ calls: 1, previews: 0, questions: 1 }, '1 tool call and 1 question wait for you'],
  [{ calls: 2, previews: 1, questions: 1 }, '2 tool calls, 1 preview and 1 question wait for you']
])('names everything that waits: %o', (waiting, words) => expect(barWords(waiting)).toBe(words))
