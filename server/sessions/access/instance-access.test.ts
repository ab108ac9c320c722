import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import { ACCESS_COOKIE } from '../../lib/web/browser-proof.ts'
import { InstanceAccess } from './instance-access.ts'

const RIGHT = 'an access token of some length'
const codeOf = (run: () => void) => {
  try {
    run()
    return 'in'
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
}

describe('the access token of the instance', () => {
  const ways = {
    bearer: (token: string, address: string) => ({ headers: { authorization: `Bearer ${token}` }, address }),
    cookie: (token: string, address: string) => ({ headers: { cookie: `${ACCESS_COOKIE}=${token}` }, address }),
    socket: (token: string, address: string) => ({ headers: {}, address, token })
  }

  // Checked: if they are not counted, the answer is "unauthorized" for ever.
  it.each(Object.entries(ways))('may be wrong a few times a minute from one address: %s', (_way, shown) => {
    const access = new InstanceAccess(RIGHT, silentLogger)
    const codes = Array.from({ length: 30 }, (_, at) => codeOf(() => access.check(shown(`wrong ${at}`, 'a'))))
    expect(codes).toEqual([...Array(20).fill('unauthorized'), ...Array(10).fill('too_fast')])
    expect(() => access.checkLogin('wrong', 'a')).toThrow(
      expect.objectContaining({ code: 'too_fast', details: expect.objectContaining({ reason: 'wrong_tokens' }) })
    )
    expect(codeOf(() => access.check(shown('wrong', 'b')))).toBe('unauthorized')
    // People with the right token get in while others guess.
    expect(codeOf(() => access.check(shown(RIGHT, 'a')))).toBe('in')
    expect(codeOf(() => access.checkLogin(RIGHT, 'a'))).toBe('in')
  })

  it('is not counted as wrong where none is shown', () => {
    const access = new InstanceAccess(RIGHT, silentLogger)
    for (let at = 0; at < 30; at++) {
      expect(codeOf(() => access.check({ headers: {}, address: 'a', token: '' }))).toBe('unauthorized')
    }
    expect(codeOf(() => access.check(ways.bearer('wrong', 'a')))).toBe('unauthorized')
  })

  // Checked: if any proof is accepted, a copied cookie gives access from anywhere.
  it('is in no cookie, and a login cookie counts only with the proof of its page', () => {
    const access = new InstanceAccess(RIGHT, silentLogger)
    const [mine, other] = ['m'.repeat(43), 'o'.repeat(43)]
    const cookie = `mcpo_access_3000=${access.cookieFor(mine)}`
    expect(cookie).not.toContain(RIGHT)
    const enter = (proof?: string) =>
      codeOf(() =>
        access.check({ headers: { host: 'h:3000', cookie, ...(proof && { 'x-owner-proof': proof }) }, address: 'a' })
      )
    expect([enter(mine), enter(other), enter(), enter('short')]).toEqual(['in', ...Array(3).fill('unauthorized')])
    const elsewhere = { headers: { host: 'h:4000', cookie }, address: 'a', proof: mine }
    expect(codeOf(() => access.check(elsewhere))).toBe('unauthorized')
    expect(codeOf(() => new InstanceAccess('another token', silentLogger).check(elsewhere))).toBe('unauthorized')
  })

  it('is asked of nobody where none is set, but only this machine comes in', () => {
    const access = new InstanceAccess(undefined, silentLogger)
    expect(codeOf(() => access.check({ headers: { host: 'localhost:3000' }, address: 'a' }))).toBe('in')
    expect(codeOf(() => access.check({ headers: { host: 'evil.example' }, address: 'a' }))).toBe('unknown_host')
    expect(codeOf(() => access.checkLogin('', 'a'))).toBe('unauthorized')
  })
})
