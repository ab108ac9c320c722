import { expect, it } from 'vitest'
import { createRouter } from '../router.ts'
import { createOwnedUsage } from './owned-usage.ts'

const example = (owner: string | undefined, at: number) => ({
  request: `brew it ${at}`,
  server: 's',
  tool: 't',
  at,
  owner
})

// Checked: with one memory for all, Bob's request follows Ann's.
it('routes by the past requests of the same owner only', () => {
  const router = createRouter()
  const tool = (name: string) => ({ server: 's', name, description: `Does the ${name} thing.` })
  router.setServer('s', [tool('alpha'), tool('beta')])
  for (let at = 0; at < 5; at += 1)
    router.learn({ request: 'brew the usual', server: 's', tool: 'beta', at, owner: 'ann' })
  const first = (owner?: string) => router.find('brew the usual', { owner }).matches[0]?.tool
  expect(first('ann')).toBe('beta')
  expect([first('bob'), first()]).toEqual([undefined, undefined])
  expect(router.usage().map(({ owner }) => owner)).toEqual(Array(5).fill('ann'))
})

it('keeps no more examples than one owner could have, and drops those of who learned longest ago', () => {
  const usage = createOwnedUsage(4)
  for (const [at, owner] of ['ann', 'bob', 'ann', undefined, 'cat'].entries()) usage.learn(example(owner, at), 's/t')
  expect(usage.examples().map(({ owner }) => owner)).toEqual(['ann', 'ann', undefined, 'cat'])
  usage.clear()
  expect(usage.examples()).toEqual([])
})
