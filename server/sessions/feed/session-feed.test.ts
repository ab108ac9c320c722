import { expect, it } from 'vitest'
import { SessionFeed } from './session-feed.ts'

it('a listener that fails stops neither the others nor the one who tells', () => {
  const errors: unknown[] = []
  const feed = new SessionFeed((error) => errors.push(error))
  const heard: string[] = []
  feed.subscribe({
    stored() {
      throw new Error('broken')
    },
    gone: (sessionId) => heard.push(`gone ${sessionId}`)
  })
  const leave = feed.subscribe({ stored: (sessionId) => heard.push(sessionId) })
  feed.stored('s1', [])
  feed.live('s1', 'agent:thinking', { turnId: 't1' })
  leave()
  feed.stored('s2', [])
  feed.gone('s3')
  expect(heard).toEqual(['s1', 'gone s3'])
  expect(errors).toHaveLength(2)
})
