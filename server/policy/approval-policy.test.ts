import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../tests/fixtures/cpu-ms.ts'
import { createPolicy, type Verdict } from './approval-policy.ts'

const policy = (...rules: [string, Verdict][]) => createPolicy(rules.map(([glob, verdict]) => ({ glob, verdict })))

/** What a glob means, slowly and plainly. */
function fits(glob: string, text: string): boolean {
  if (glob === '') return text === ''
  if (glob[0] === '*') return fits(glob.slice(1), text) || (text !== '' && fits(glob, text.slice(1)))
  return text !== '' && glob[0] === text[0] && fits(glob.slice(1), text.slice(1))
}

describe('the policy', () => {
  it('asks for whatever no rule fits', () => {
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
  ])('takes the most specific of %j and %j', (a, b, verdict) => {
    expect(policy([...a], [...b])('workspace', 'execute_command')).toBe(verdict)
    expect(policy([...b], [...a])('workspace', 'execute_command')).toBe(verdict)
  })

  it('takes the stricter of two equally specific rules', () => {
    expect(policy(['a/x*', 'allow'], ['a/*x', 'deny'])('a', 'x')).toBe('deny')
    expect(policy(['a/x*', 'allow'], ['a/*x', 'ask'])('a', 'x')).toBe('ask')
  })

  it('reads a glob as it is meant, with no character but * special', () => {
    const piece = fc.constantFrom('a', 'b', '*', '.', '/', '(', '\\', '\n')
    const text = fc.array(piece, { maxLength: 10 }).map((list) => list.join(''))
    fc.assert(
      fc.property(text, text, (glob, name) => {
        const verdict = policy([glob, 'allow'])('a', name)
        expect(verdict).toBe(fits(glob, `a/${name}`) ? 'allow' : 'ask')
      }),
      { numRuns: 2000 }
    )
  })

  it('is quick on a name that was made to be slow', async () => {
    const decide = policy([`${'a*'.repeat(40)}b`, 'allow'])
    expect(await cpuMs(() => expect(decide('a', 'a'.repeat(20_000))).toBe('ask'))).toBeLessThan(500)
  })
})
