import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ApprovalRule } from '../../contract/servers/approval-rule.ts'
import { cpuMs } from '../../tests/support/cpu-ms.ts'
import { createPolicy } from './approval-policy.ts'

const policy = (...rules: [string, ApprovalRule][]) => createPolicy(rules.map(([glob, rule]) => ({ glob, rule })))

/** A slow and simple implementation of globs, to compare with. */
function fits(glob: string, text: string): boolean {
  if (glob === '') return text === ''
  if (glob[0] === '*') return fits(glob.slice(1), text) || (text !== '' && fits(glob, text.slice(1)))
  return text !== '' && glob[0] === text[0] && fits(glob.slice(1), text.slice(1))
}

describe('the policy', () => {
  it('asks if no rule matches', () => {
    expect(policy()('workspace', 'read_file')).toBe('ask')
    expect(policy(['github/*', 'allow'])('githubby', 'x')).toBe('ask')
  })

  it.each([
    [['workspace/*', 'allow'] as const, ['workspace/execute_command', 'ask'] as const, 'ask'],
    [['*', 'deny'] as const, ['workspace/*', 'allow'] as const, 'allow'],
    [['workspace/exec*', 'allow'] as const, ['workspace/*mand', 'deny'] as const, 'deny'],
    [['workspace/execute_command', 'allow'] as const, ['workspace/execute_command*', 'deny'] as const, 'allow'],
    [['workspace/*', 'allow'] as const, ['******************', 'deny'] as const, 'allow'],
    [['*execute_command', 'allow'] as const, ['execute_command*', 'deny'] as const, 'allow'],
    [['workspace/execute_c*', 'allow'] as const, ['*kspace/execute_cmd', 'deny'] as const, 'allow']
  ])('applies the most specific of %j and %j', (a, b, rule) => {
    expect(policy([...a], [...b])('workspace', 'execute_command')).toBe(rule)
    expect(policy([...b], [...a])('workspace', 'execute_command')).toBe(rule)
  })

  it('applies the stricter of two equally specific rules', () => {
    expect(policy(['a/x*', 'allow'], ['a/*x', 'deny'])('a', 'x')).toBe('deny')
    expect(policy(['a/x*', 'allow'], ['a/*x', 'ask'])('a', 'x')).toBe('ask')
  })

  it('treats only * as special in a glob', () => {
    const piece = fc.constantFrom('a', 'b', '*', '.', '/', '(', '\\', '\n')
    const text = fc.array(piece, { maxLength: 10 }).map((list) => list.join(''))
    fc.assert(
      fc.property(text, text, (glob, name) => {
        const rule = policy([glob, 'allow'])('a', name)
        expect(rule).toBe(fits(glob, `a/${name}`) ? 'allow' : 'ask')
      }),
      { numRuns: 2000 }
    )
  })

  it('stays fast on a hostile name', async () => {
    const decide = policy([`${'a*'.repeat(40)}b`, 'allow'])
    expect(await cpuMs(() => expect(decide('a', 'a'.repeat(20_000))).toBe('ask'))).toBeLessThan(500)
  })
})
