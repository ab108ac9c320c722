import { expect, it } from 'vitest'
import { type CallEntry, emptyTranscript } from '../../../contract/transcript.ts'
import { argumentsHash } from '../../audit/audit.ts'
import { RecordedCalls } from './recorded-calls.ts'

const call = (callId: string, args: Record<string, unknown>, name = 'execute_command', server = 'workspace') =>
  ({ callId, server, name, args }) as unknown as CallEntry

it('finds what a recorded call was about by the hash of its arguments, and reads a session only when it must', async () => {
  let reads = 0
  const decision = { approved: true, by: 'human', at: 1, editedArgs: { command: 'ls' } } as const
  const edited: CallEntry = { ...call('b', { command: 'rm -rf /' }), decision }
  const calls = new RecordedCalls(async () => {
    reads += 1
    const all = [call('a', { command: 'make\n  test' }), edited, call('c', { q: 1 }, 'search', 'web')]
    return { ...emptyTranscript(), calls: Object.fromEntries(all.map((each) => [each.callId, each])) }
  })
  const about = (args: object, tool = 'execute_command', server = 'workspace') =>
    calls.about({ session: 's', server, tool, argumentsHash: argumentsHash(args) })
  expect(await about({ command: 'make\n  test' })).toBe('make test')
  expect(await about({ command: 'ls' })).toBe('ls')
  expect(await about({ q: 1 }, 'search', 'web')).toBe('{"q":1}')
  expect(reads).toBe(1)
  expect(await about({ command: 'other' })).toBeUndefined()
  expect(await about({ command: 'other' })).toBeUndefined()
  expect(reads).toBe(2)
  expect(await calls.about({ server: 'workspace', tool: 'x', argumentsHash: '' })).toBeUndefined()
})
