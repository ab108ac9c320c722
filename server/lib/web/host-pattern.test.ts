import { describe, expect, it } from 'vitest'
import { matchesHost, normalHost, parseHostPattern } from './host-pattern.ts'

const allows = (pattern: string, host: string, port: number) => {
  const parsed = parseHostPattern(pattern)
  return parsed !== undefined && matchesHost(parsed, normalHost(host), port)
}

describe('host patterns', () => {
  it.each([
    ['api.example.com', 'api.example.com', 443, true],
    ['api.example.com', 'API.Example.com.', 80, true],
    ['api.example.com', 'api.example.com', 22, false],
    ['api.example.com', 'x.api.example.com', 443, false],
    ['api.example.com', 'api.example.com.evil.net', 443, false],
    ['api.example.com:8443', 'api.example.com', 8443, true],
    ['api.example.com:8443', 'api.example.com', 443, false],
    ['api.example.com:*', 'api.example.com', 5432, true],
    ['*.example.com', 'a.b.example.com', 443, true],
    ['*.example.com', 'example.com', 443, false],
    ['*.example.com', 'evilexample.com', 443, false],
    ['*', 'anything.net', 443, true],
    ['*', 'anything.net', 25, false],
    ['bücher.example', 'xn--bcher-kva.example', 443, true],
    ['10.0.0.5:8080', '10.0.0.5', 8080, true],
    ['[::1]:8080', '0:0:0:0:0:0:0:1', 8080, true]
  ])('%s and %s:%i: %s', (pattern, host, port, expected) => {
    expect(allows(pattern, host, port)).toBe(expected)
  })

  it.each([
    '',
    'http://a.com',
    'a.com/path',
    'a.com:0',
    'a.com:99999',
    '*.10.0.0.1',
    'a*.com',
    'a b',
    'user@a.com',
    '*.',
    ':80'
  ])('refuses %j', (pattern) => {
    expect(parseHostPattern(pattern)).toBeUndefined()
  })
})
