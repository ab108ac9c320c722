import { expect, it } from 'vitest'
import { doubtAbout } from './doubtful-sentence.ts'

it('doubts what says not to, depends on something, or asks about a tool', () => {
  const doubtful = [
    'do not list my files',
    "please don't read the log",
    'Don’t open it',
    'never show the notes',
    'show the log but do not read the notes',
    'you must not list them',
    'if the build fails, read the log',
    'read the log unless it is empty',
    'list the notes only if I am late',
    'what does cleanup do?',
    'how does list_files work'
  ]
  expect(doubtful.filter((request) => doubtAbout(request) === undefined)).toEqual([])
})

it('takes at its word what asks for something', () => {
  const plain = [
    'list files that do not contain TODO',
    'find issues that are not closed',
    'check if the domain is free',
    'what is the weather in Paris?',
    'how do I get from Rome to Milan by train?',
    "I can't find the report, search for it",
    'show me trains, including but not limited to night trains',
    'search for hotels, if possible with a pool',
    'when does the next bus leave?'
  ]
  expect(plain.filter((request) => doubtAbout(request) !== undefined)).toEqual([])
})
