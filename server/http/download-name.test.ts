import fc from 'fast-check'
import { expect, it } from 'vitest'
import { asDownload, asTitled } from './download-name.ts'

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

it.each([
  ['Fix the login page', 'Fix%20the%20login%20page.html'],
  ['../../etc/passwd: a "plan"?', 'etc%20passwd%20a%20%22plan'],
  ['\u202egnp.exe\n\u0000', '_gnp.exe.html'],
  ['Straße 東京', 'Stra%C3%9Fe%20%E6%9D%B1%E4%BA%AC.html'],
  [' . ', 'conversation.html']
])('names a shared conversation after its title: %j', (title, name) => {
  const header = asTitled(title, 'html')
  expect(header).toMatch(/^attachment; filename\*=UTF-8''[\w%.~-]+\.html$/)
  expect(decodeURIComponent(header)).not.toMatch(/[\\/:?"<>|\u202e]|''\./)
  expect(decodeURIComponent(header)).toContain(decodeURIComponent(name).replaceAll('"', ''))
})
