import { describe, expect, it } from 'vitest'
import { parseHostPattern } from '../../lib/web/host-pattern.ts'
import { checkTarget, readTarget } from './egress-rules.ts'

const rules = (...hosts: string[]) => hosts.flatMap((host) => parseHostPattern(host) ?? [])
const leadingTo = (...addresses: string[]) => ({ lookup: async () => addresses })

describe('what a sandbox may reach', () => {
  it('is a named host at the addresses that its name leads to', async () => {
    const verdict = await checkTarget(
      rules('a.com'),
      { host: 'a.com', port: 443 },
      leadingTo('93.184.216.34', '2606:2800::1')
    )
    expect(verdict).toEqual({ addresses: ['93.184.216.34', '2606:2800::1'] })
  })

  it('asks no name server about a host that is not named', async () => {
    const asked: string[] = []
    const lookup = async (host: string) => {
      asked.push(host)
      return ['93.184.216.34']
    }
    expect(await checkTarget(rules('a.com'), { host: 'b.com', port: 443 }, { lookup })).toHaveProperty('denied')
    expect(asked).toEqual([])
  })

  // Checked: if every address counts as public, it may be dialled.
  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::1',
    'ff02::1'
  ])('excludes private addresses that a named host resolves to: %s', async (address) => {
    const verdict = await checkTarget(rules('a.com', '*.b.com', '*'), { host: 'a.com', port: 80 }, leadingTo(address))
    expect(verdict).toEqual({ denied: expect.stringContaining(`leads to ${address}`) })
  })

  it('is a private address that is named itself, at its port', async () => {
    const patterns = rules('a.com', '10.1.2.3:80')
    const lookup = leadingTo('10.1.2.3')
    expect(await checkTarget(patterns, { host: 'a.com', port: 80 }, lookup)).toEqual({ addresses: ['10.1.2.3'] })
    expect(await checkTarget(patterns, { host: '10.1.2.3', port: 80 }, lookup)).toEqual({ addresses: ['10.1.2.3'] })
    expect(await checkTarget(patterns, { host: 'a.com', port: 443 }, lookup)).toHaveProperty('denied')
    expect(await checkTarget(rules('*'), { host: '10.1.2.3', port: 80 }, lookup)).toHaveProperty('denied')
  })

  // Checked: if only private addresses are refused, the address may be dialled.
  it('excludes public addresses of this machine, unless they are named themselves', async () => {
    const here = { ...leadingTo('5.5.5.5'), isOwn: (address: string) => address === '5.5.5.5' }
    for (const host of ['5.5.5.5', 'a.com']) {
      const verdict = await checkTarget(rules('a.com', '*'), { host, port: 80 }, here)
      expect(verdict).toEqual({
        denied: 'it leads to 5.5.5.5, which is an address of this machine and not on the list itself'
      })
      expect(await checkTarget(rules('a.com', '5.5.5.5'), { host, port: 80 }, here)).toHaveProperty('addresses')
    }
  })

  it('is this machine only when localhost is named', async () => {
    const lookup = leadingTo('127.0.0.1')
    expect(await checkTarget(rules('localhost:99'), { host: 'localhost', port: 99 }, lookup)).toHaveProperty(
      'addresses'
    )
    expect(await checkTarget(rules('*:99'), { host: 'localhost', port: 99 }, lookup)).toHaveProperty('denied')
    const elsewhere = leadingTo('10.0.0.1')
    expect(await checkTarget(rules('localhost:99'), { host: 'localhost', port: 99 }, elsewhere)).toHaveProperty(
      'denied'
    )
  })

  it.each([
    ['a.com:443', { host: 'a.com', port: 443 }],
    ['[::1]:80', { host: '::1', port: 80 }],
    ['0x7f.1:80', { host: '127.0.0.1', port: 80 }],
    ['2130706433:80', { host: '127.0.0.1', port: 80 }],
    ['a.com', undefined],
    ['a.com:0', undefined],
    ['a@b:80', undefined],
    ['', undefined]
  ])('reads %j as %j', (authority, target) => {
    expect(readTarget(authority)).toEqual(target)
  })
})
