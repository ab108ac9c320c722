import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isLoopbackHost, mayUse, readCookie } from './browser-proof.ts'

describe('where a request comes from', () => {
  it.each([
    [undefined, 'localhost:3000', true],
    ['http://localhost:3000', 'localhost:3000', true],
    ['https://chat.example', 'chat.example', true],
    ['http://localhost:3001', 'localhost:3000', false],
    ['http://evil.example', 'localhost:3000', false],
    ['http://localhost:3000.evil.example', 'localhost:3000', false],
    ['null', 'localhost:3000', false],
    ['http://localhost:3000', undefined, false]
  ])('origin %s at %s: %s', (origin, host, own) => {
    expect(mayUse({ headers: { origin, host } })).toBe(own)
  })

  // Checked: if only the host is compared, that page may act.
  it('is another site if the page has no TLS but the proxy has, or if it is not a web page', () => {
    const secure = { host: 'chat.example', 'x-forwarded-proto': 'https' }
    expect(mayUse({ headers: { ...secure, origin: 'https://chat.example' } })).toBe(true)
    expect(mayUse({ headers: { ...secure, origin: 'http://chat.example' } })).toBe(false)
    expect(mayUse({ headers: { host: 'chat.example', origin: 'ftp://chat.example' } })).toBe(false)
  })

  // Checked: without the comparison, an image of any site starts a server whose name it guesses.
  it.each([
    [undefined, true],
    ['none', true],
    ['same-origin', true],
    ['same-site', false],
    ['cross-site', false]
  ])('is another site if the browser says so, also without an Origin: %s', (site, own) => {
    expect(mayUse({ headers: { host: 'localhost:3000', 'sec-fetch-site': site } })).toBe(own)
  })

  it.each(['localhost', 'localhost:3000', '127.0.0.1:80', '127.8.8.8', '[::1]:3000', 'app.localhost:3000'])(
    '%s is this machine',
    (host) => expect(isLoopbackHost(host)).toBe(true)
  )

  it.each([undefined, '', 'evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1', 'a b'])(
    '%s may be anything',
    (host) => expect(isLoopbackHost(host)).toBe(false)
  )
})

describe('cookies', () => {
  it('are read by their whole name, as they were set', () => {
    const header = 'a=1; mcpo_owner2=no; mcpo_owner=yes=; b'
    expect(readCookie(header, 'mcpo_owner')).toBe('yes=')
    expect(readCookie('x=a%20b%3D', 'x')).toBe('a b=')
    expect(readCookie('x=%zz', 'x')).toBe('%zz')
    expect(readCookie(undefined, 'x')).toBeUndefined()
  })

  it('of any kind do no harm', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (header, name) => void readCookie(header, name)))
  })
})

// Checked: if cookies stay, the request has the owner's cookie.
it('lets in a page of an allowed site, without its cookies', () => {
  const headers = { origin: 'http://localhost:5173', host: 'localhost:3000', cookie: 'mcpo_owner_3000=x' }
  expect(mayUse({ headers: { ...headers } }, [])).toBe(false)
  expect(mayUse({ headers: { ...headers } }, ['http://localhost:5174', 'https://localhost:5173'])).toBe(false)
  const request = { headers: { ...headers } }
  expect(mayUse(request, ['http://localhost:5173'])).toBe(true)
  expect(request.headers).not.toHaveProperty('cookie')
})
