import { expect, it } from 'vitest'
import { PersonLimit } from './person-limit.ts'

const tried = async (limit: PersonLimit, owner: string | undefined, address = '1') =>
  limit.enter({ owner, address }, 'requests').then(
    () => 'passed',
    ({ code }) => code
  )

// Checked: if each owner is counted alone, all 300 pass.
it('counts all made-up owners of an address together, and owners with sessions alone', async () => {
  const limit = new PersonLimit(10, async (owner) => owner.startsWith('known'))
  const passed: string[] = []
  for (let i = 0; i < 300; i++) passed.push(await tried(limit, `made-up-${i}`))
  expect(passed.filter((outcome) => outcome === 'passed')).toHaveLength(100)
  expect(passed.at(-1)).toBe('too_fast')
  expect([await tried(limit, 'known'), await tried(limit, 'new', '2')]).toEqual(['passed', 'passed'])
  expect(await tried(limit, undefined)).toBe('passed')
})

it('has the same limit for every owner, and for the clients without one at an address', async () => {
  const limit = new PersonLimit(2, async (owner) => owner === 'known')
  for (const owner of ['known', 'new', undefined]) {
    const outcomes = [await tried(limit, owner), await tried(limit, owner), await tried(limit, owner)]
    expect(outcomes).toEqual(['passed', 'passed', 'too_fast'])
  }
})
