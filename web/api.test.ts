import { afterEach, expect, it, vi } from 'vitest'
import { api } from './api.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

it.each([
  ['the answer', () => new Promise<Response>(() => {})],
  ['the rest of the answer', async () => new Response(new ReadableStream())]
])('does not wait for ever for %s', async (_what, answer) => {
  const deadline = new AbortController()
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(deadline.signal)
  vi.stubGlobal('fetch', async (_path: string, { signal }: RequestInit = {}) => {
    const late = new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    const response = await Promise.race([answer(), late])
    return Object.assign(response, { json: () => late })
  })
  const cards = api.approvals()
  deadline.abort(new DOMException('late', 'TimeoutError'))
  await expect(cards).rejects.toMatchObject({ code: 'no_answer', message: 'The server has not answered in time.' })
})
