import { expect, it } from 'vitest'
import type { Caller } from '../../calls/caller.ts'
import { RecentOffers } from './recent-offers.ts'

const ann: Caller = { owner: 'ann', door: 'http', client: 'a/1' }
const tool = { server: 'mail', tool: 'send' }

it('gives a request back once, to the client that made it, for a tool that it was offered', () => {
  const offers = new RecentOffers()
  offers.offered(ann, 'mail the report', [tool])
  expect(offers.take({ ...ann, owner: 'bob' }, tool)).toBeUndefined()
  expect(offers.take({ ...ann, client: 'b/1' }, tool)).toBeUndefined()
  expect(offers.take(ann, { server: 'mail', tool: 'list' })).toBeUndefined()
  expect(offers.take(ann, tool)).toBe('mail the report')
  expect(offers.take(ann, tool)).toBeUndefined()
})

it('prefers the latest request, and forgets old ones', () => {
  let now = 0
  const offers = new RecentOffers(() => now)
  offers.offered(ann, 'first', [tool])
  now = 400_000
  offers.offered(ann, 'second', [tool, { server: 'mail', tool: 'list' }])
  now = 700_000
  expect([offers.take(ann, tool), offers.take(ann, tool)]).toEqual(['second', undefined])
})

// Checked: if every tool that an earlier request may have meant counts, 'close the shop' is learned for sending mail.
it('an earlier request counts only for a tool that it was shown', () => {
  const list = { server: 'mail', tool: 'list' }
  const offers = new RecentOffers()
  offers.offered(ann, 'close the shop', [list], [list, tool])
  offers.offered(ann, 'open it', [], [])
  expect(offers.take(ann, tool)).toBeUndefined()
  expect(offers.take(ann, list)).toBe('close the shop')
  offers.offered(ann, 'mail the report', [tool])
  offers.offered(ann, 'any mail?', [list], [list, tool])
  expect([offers.take(ann, tool), offers.take(ann, tool)]).toEqual(['mail the report', 'any mail?'])
})

it('keeps a limited number of requests and clients', () => {
  const offers = new RecentOffers()
  for (let at = 0; at < 7; at += 1) offers.offered(ann, `request ${at}`, [{ server: 's', tool: `t${at}` }])
  expect(offers.take(ann, { server: 's', tool: 't1' })).toBeUndefined()
  expect(offers.take(ann, { server: 's', tool: 't2' })).toBe('request 2')
  for (let at = 0; at < 250; at += 1) offers.offered({ ...ann, owner: `o${at}` }, 'x', [tool])
  expect(offers.take({ ...ann, owner: 'o49' }, tool)).toBeUndefined()
  expect(offers.take({ ...ann, owner: 'o51' }, tool)).toBe('x')
})
