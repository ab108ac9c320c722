import { describe, expect, it } from 'vitest'
import { clientAddresses } from './client-address.ts'

const from = (remoteAddress: string, forwarded?: string) => ({
  headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  socket: { remoteAddress }
})

describe('the address of a request', () => {
  // Checked: if anyone's header counts, the made-up address is used.
  it('is the address of the connection, whatever a header says, unless a trusted proxy sends the header', () => {
    expect(clientAddresses([])(from('127.0.0.1', '1.2.3.4'))).toBe('127.0.0.1')
    const addressOf = clientAddresses(['127.0.0.0/8', '::1', '10.0.0.7'])
    expect(addressOf(from('9.9.9.9', '1.2.3.4'))).toBe('9.9.9.9')
    expect(addressOf(from('127.0.0.1', '6.6.6.6, 1.2.3.4'))).toBe('1.2.3.4')
    expect(addressOf(from('::1', '6.6.6.6, 2001:db8::1, 10.0.0.7'))).toBe('2001:db8:0:0::/64')
    expect(addressOf(from('::ffff:127.0.0.1', '1.2.3.4'))).toBe('1.2.3.4')
  })

  // Checked: if the whole address counts, each of the addresses is another one.
  it('is one for all IPv6 addresses that a client usually has', () => {
    const addressOf = clientAddresses([])
    const same = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:0DB8:1:2:3:4:5:6', '2001:db8:1:2::%eth0']
    expect(new Set(same.map((address) => addressOf(from(address))))).toEqual(new Set(['2001:db8:1:2::/64']))
    expect(addressOf(from('2001:db8:1:3::1'))).toBe('2001:db8:1:3::/64')
    expect([addressOf(from('::1')), addressOf(from('::ffff:9.9.9.9')), addressOf(from(''))]).toEqual([
      '::1',
      '9.9.9.9',
      ''
    ])
  })

  it('is the proxy’s own where it says nothing, or no address', () => {
    const addressOf = clientAddresses(['127.0.0.1'])
    for (const said of [undefined, '', 'unknown', '1.2.3.4, x', ',', '1.2.3.4,']) {
      expect(addressOf(from('127.0.0.1', said))).toBe('127.0.0.1')
    }
  })
})
