import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMs } from '../../../tests/support/cpu-ms.ts'
import { readPlan } from './demo-requests.ts'

const one = (text: string) => readPlan(text).groups

describe('phrases', () => {
  test.each([
    ['list the files', { kind: 'list' }],
    ['List the files.', { kind: 'list' }],
    ['please list files', { kind: 'list' }],
    ['show me the files in src', { kind: 'list', path: 'src' }],
    ['list the files in "my folder"', { kind: 'list', path: 'my folder' }],
    ['what files are there?', { kind: 'list' }],
    ['ls', { kind: 'list' }],
    ['list /workspace', { kind: 'list' }],
    ['read log.txt', { kind: 'read', path: 'log.txt' }],
    ['Can you show me the file notes/a b.txt?', { kind: 'read', path: 'notes/a b.txt' }],
    ["what's in 'x.txt'", { kind: 'read', path: 'x.txt' }],
    ['write hello.txt: Hello, world!', { kind: 'write', path: 'hello.txt', content: 'Hello, world!' }],
    ['WRITE "a b.txt": x', { kind: 'write', path: 'a b.txt', content: 'x' }],
    ['create a file called a.md: # Title', { kind: 'write', path: 'a.md', content: '# Title' }],
    ['create a new file a.txt with the text "hi there"', { kind: 'write', path: 'a.txt', content: 'hi there' }],
    ['write hello there to hello.txt', { kind: 'write', path: 'hello.txt', content: 'hello there' }],
    ['save "x: y" into the file notes.txt', { kind: 'write', path: 'notes.txt', content: 'x: y' }],
    ['create an empty file x.txt', { kind: 'write', path: 'x.txt', content: '' }],
    ['use memory__search {"q": "a"}', { kind: 'use', tool: 'memory__search', args: '{"q": "a"}' }],
    ['use ping', { kind: 'use', tool: 'ping', args: '{}' }],
    ['use broken {"q": ', { kind: 'use', tool: 'broken', args: '{"q": ' }],
    ['run `ls -la`', { kind: 'run', command: 'ls -la' }]
  ])('%s', (text, request) => {
    expect(one(text)).toEqual([[request]])
  })

  test.each([
    'echo once >> /workspace/log.txt',
    "printf '%s%s' a b > check.txt",
    'a; b',
    'ls, then read x',
    'echo "x" && list the files',
    'sleep 60',
    'echo uid=$(id -u) if=$(ls /sys/class/net | tr "\\n" ,) root=$(touch /x 2>/dev/null && echo writable)'
  ])('run keeps the command as it is: %s', (command) => {
    expect(one(`run ${command}`)).toEqual([[{ kind: 'run', command }]])
  })

  test('any one-line command stays one call with its exact characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
        fc.pre(!/[\r\n]/.test(text) && text.trim() !== '' && !(text.startsWith('`') && text.endsWith('`')))
        expect(one(`run ${text}`)).toEqual([[{ kind: 'run', command: text }]])
      })
    )
  })

  test.each(['hello', 'what can you do?', 'make me a sandwich', '', '   '])('%s is no request', (text) => {
    expect(one(text)).toEqual([])
  })
})

describe('several requests', () => {
  test('lines are one step', () => {
    expect(one('read a\nread b\nrun ls')).toEqual([
      [
        { kind: 'read', path: 'a' },
        { kind: 'read', path: 'b' },
        { kind: 'run', command: 'ls' }
      ]
    ])
  })

  test('", then" is a later step', () => {
    expect(one('write a.txt: hi, then read a.txt and then run ls')).toEqual([
      [{ kind: 'write', path: 'a.txt', content: 'hi' }],
      [{ kind: 'read', path: 'a.txt' }],
      [{ kind: 'run', command: 'ls' }]
    ])
  })

  test('", then" inside a text stays text', () => {
    expect(one('write a.txt: first this, then that')).toEqual([
      [{ kind: 'write', path: 'a.txt', content: 'first this, then that' }]
    ])
  })

  test('further lines belong to the content or the command before them', () => {
    expect(one('write poem.txt: roses\nviolets\n\nend')).toEqual([
      [{ kind: 'write', path: 'poem.txt', content: 'roses\nviolets\n\nend' }]
    ])
    expect(one('run cat <<EOF\nhello\nEOF')).toEqual([[{ kind: 'run', command: 'cat <<EOF\nhello\nEOF' }]])
  })

  test('a long hostile line costs no time', async () => {
    const spent = await cpuMs(() => {
      readPlan(`write ${'a '.repeat(50_000)}`)
      readPlan(`show me ${'the file '.repeat(20_000)}`)
      readPlan(`create ${'new '.repeat(50_000)}`)
      readPlan(`read ${'x, then '.repeat(5_000)}`)
    })
    expect(spent).toBeLessThan(2_000)
  })
})
