import type { ServerContext } from '@modelcontextprotocol/server'
import { expect, it } from 'vitest'
import type { RawResult } from '../../connections/wire/call-input.ts'
import { HeldCall } from './held-call.ts'

function roundContext(progressToken: string, told: unknown[], inputResponses = {}): ServerContext {
  const notify = async ({ params }: { params: unknown }) => void told.push(params)
  const mcpReq = { _meta: { progressToken }, notify, inputResponses, signal: new AbortController().signal }
  return { mcpReq } as unknown as ServerContext
}

it('passes each report on once: to the open round, or the newest of those between two rounds to the next', async () => {
  const call = new HeldCall('a')
  const told: unknown[] = []
  const { promise, resolve } = Promise.withResolvers<RawResult>()
  call.start(() => promise)
  const first = call.round(roundContext('one', told), () => 'state')
  call.progress({ progress: 1 })
  const answered = call.ask({ method: 'roots/list', params: {} }, new AbortController().signal)
  await expect(first).resolves.toMatchObject({ resultType: 'input_required' })
  call.progress({ progress: 2 })
  call.progress({ progress: 3 })
  const second = call.round(roundContext('two', told, { 'question-1': { roots: [] } }), () => 'state')
  await expect(answered).resolves.toEqual({ roots: [] })
  call.progress({ progress: 4 })
  resolve({ content: [] })
  await expect(second).resolves.toEqual({ content: [] })
  expect(told).toEqual([
    { progress: 1, progressToken: 'one' },
    { progress: 3, progressToken: 'two' },
    { progress: 4, progressToken: 'two' }
  ])
})
