import { expect, it } from 'vitest'
import { cpuMs } from '../../../tests/support/cpu-ms.ts'
import { kindsTaken, maskLiterals, nameLiterals } from './mask-literals.ts'

const masked = (request: string) => {
  const { text, kinds } = maskLiterals(request)
  return [text.replace(/\s+/g, ' ').trim(), [...kinds].sort().join()]
}

it.each([
  ['read /var/log/monitor/app.log', 'read', 'path'],
  ['open notes.md and src/deep/main.ts', 'open and', 'path'],
  ['copy C:\\Users\\me\\a.txt here', 'copy here', 'path'],
  ['what is 17 plus 25', 'what is plus sum', 'number'],
  ['fetch https://example.com/weather?x=1 now', 'fetch now', 'url'],
  ['mail anna@example.com "book a flight"', 'mail', 'email,quoted'],
  ["search for 'blue whales', please", 'search for , please', 'quoted'],
  ['show commit 3f2a9bc1 and issue #42 and ABC-123', 'show commit and issue and', 'id,number'],
  ['events from 2026-04-01 to 04/30/2026', 'events from to', 'date'],
  ['ping 192.0.2.1 at 10:30', 'ping at :', 'number'],
  ['in 1.5 hours or 50%', 'in hours or', 'number']
])('%s: masked', (request, text, kinds) => {
  expect(masked(request)).toEqual([text, kinds])
})

it.each([
  "don't say that it's Anna's",
  'Node.js and/or client/server, e.g. mp3 to base64',
  'convert an H264 video to 200x200 for example.com.tr',
  '"all of it is quoted"',
  '42'
])('%s: left as it is', (request) => {
  expect(maskLiterals(request).text).toBe(request)
})

it('leaves what belongs to a name', () => {
  const isNamePart = (value: string, before: string) => value === '17' && before.endsWith('C++ ')
  expect(maskLiterals('the C++ 17 versions of 17 files', isNamePart).text).toBe('the C++ 17 versions of   files')
})

it('says what addresses and paths are, for embeddings', () => {
  const request = 'read /srv/graph/memory.txt, https://x.org/graph and Node.js "as text", 3 times'
  expect(nameLiterals(request)).toBe('read a file, a web page and Node.js "as text", 3 times')
})

it('knows the kinds of values that parameters take', () => {
  expect([...kindsTaken('path Where to read\ntail: last lines')]).toEqual(['path'])
  expect([...kindsTaken('sourceFile\nurl\nto_email')].sort()).toEqual(['email', 'path', 'url'])
  expect([...kindsTaken('query the url of something\nprofile')]).toEqual([])
})

it.each(['a-', 'a/', 'a.', '/a', '1:', '"', "'", 'a@', '#1', 'a:\\', 'f0', 'a.a/'])(
  'is quick on any text: %s',
  async (part) => {
    const request = part.repeat(4000 / part.length)
    expect(await cpuMs(() => maskLiterals(request))).toBeLessThan(200)
  }
)
