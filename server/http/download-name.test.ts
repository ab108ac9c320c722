import fc from 'fast-check'
import { expect, it } from 'vitest'
import { asDownload } from './download-name.ts'

const nameOf = (path: string) => decodeURIComponent(asDownload(path).replace(/^attachment; filename\*=UTF-8''/, ''))
const bytes = (path: string) => `\0b64:${Buffer.from(path, 'latin1').toString('base64')}`

// Checked: if the path is used as sent, the first file gets its base64 as a name, and the second looks like a picture.
it.each([
  [bytes('dir/na\xefve.txt'), 'na�ve.txt'],
  ['a/picture\u202egnp.exe', 'picture_gnp.exe'],
  ["it's (1)*.txt", "it's (1)*.txt"],
  ['übung/日本.txt', '日本.txt'],
  ['a\r\nset-cookie: x', 'a_ set-cookie: x'],
  ['\ud800.txt', '�.txt'],
  [`${'x'.repeat(300)}.tar.gz`, `${'x'.repeat(180)}…${'x'.repeat(12)}.tar.gz`],
  ['', 'file']
])('the name of the download of %j', (path, name) => {
  expect(nameOf(path)).toBe(name)
})

it('is a valid header for any path', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (path) => {
      for (const each of [path, bytes(path)])
        expect(asDownload(each)).toMatch(/^attachment; filename\*=UTF-8''[\w.~%-]{1,2000}$/)
    })
  )
})
