import { expect, it } from 'vitest'
import { isSmallTalk } from './small-talk.ts'

it('tells small talk from requests', () => {
  const talk = [
    ...['hello', 'Good morning!', 'thanks, that was great', 'how are you today?', 'ok', 'see you tomorrow'],
    ...["what's up", 'Who are you?', 'what is your name?', 'help me', 'What can you do?']
  ]
  expect(talk.filter((request) => !isSmallTalk(request))).toEqual([])
  const requests = [
    ...['hello world program', 'how is the weather today?', 'list all files', 'who is Bob?', '42', 'what is my name?'],
    ...['go back', 'call my friend', 'hi 北京的天气', 'привет']
  ]
  expect(requests.filter(isSmallTalk)).toEqual([])
})
