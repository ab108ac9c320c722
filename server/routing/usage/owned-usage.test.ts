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

// Checked: if those who learned longest ago lose everything, Ann has nothing left.
it('keeps no more examples than one owner could have, and drops those of who has most', () => {
  const usage = createOwnedUsage(4)
  const owners = ['ann', 'bob', 'bob', undefined, 'bob', 'bob', 'bob', 'cat', 'cat', 'cat']
  for (const [at, owner] of owners.entries()) usage.learn(example(owner, at), 's/t')
  expect(usage.examples().map(({ owner, at }) => [owner, at])).toEqual([
    ['ann', 0],
    [undefined, 3],
    ['bob', 6],
    ['cat', 9]
  ])
  usage.clear()
  expect(usage.examples()).toEqual([])
  for (const at of [1, 2, 3, 4]) usage.learn(example('ann', at), 's/t')
  expect(usage.examples()).toHaveLength(4)
})

// Checked: if the owner who learned longest ago is forgotten, it is Ann.
it('forgets nobody who has taught it more than a crowd of made-up owners', () => {
  const usage = createOwnedUsage(20_000)
  for (const at of [1, 2, 3]) usage.learn(example('ann', at), 's/t')
  for (let at = 0; at < 1000; at += 1) usage.learn(example(`crowd ${at}`, at), 's/t')
  expect(usage.examples().filter(({ owner }) => owner === 'ann')).toHaveLength(3)
})
