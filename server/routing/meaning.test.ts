import { describe, expect, it } from 'vitest'
import { createRouter } from './router.ts'
import { toolKey } from './tool-corpus.ts'

const TOOLS: Record<string, string> = {
  send_email: 'Send an email with subject and body',
  current_weather: 'Current weather of a city',
  list_tables: 'List all tables of the database',
  read_file: 'Read the contents of a file',
  play_song: 'Play a song',
  book_flight: 'Book a flight'
}

function router() {
  const built = createRouter()
  for (const [name, description] of Object.entries(TOOLS)) {
    built.setServer(`${name} server`, [{ server: `${name} server`, name, description }])
  }
  return built
}

/** Cosines as a model would give them: all in a narrow band, the right one above it. */
function likeness(right: string, lead = 0.3) {
  return new Map(
    Object.keys(TOOLS).map((name, at) => [
      toolKey(`${name} server`, name),
      0.4 + at * 0.005 + (name === right ? lead : 0)
    ])
  )
}

describe('a request in another language', () => {
  const request = 'wie wird es morgen draußen sein, brauche ich einen Schirm?'

  it('without a model is not guessed at', () => {
    expect(router().find(request).abstained).toBe(true)
  })

  it('with embeddings finds its tool, and is answered', () => {
    const { matches, abstained } = router().find(request, { likeness: likeness('current_weather') })
    expect(matches[0]).toMatchObject({ tool: 'current_weather' })
    expect(abstained).toBe(false)
    expect(matches[0]?.confidence).toBeLessThan(0.8)
  })

  it('embeddings that single out nothing change nothing', () => {
    expect(router().find(request, { likeness: likeness('none') }).abstained).toBe(true)
    expect(router().find(request, { likeness: new Map() }).abstained).toBe(true)
  })
})

describe('embeddings beside words', () => {
  it('a named tool wins against them', () => {
    const { matches } = router().find('use list_tables', { likeness: likeness('play_song') })
    expect(matches[0]).toMatchObject({ tool: 'list_tables' })
  })

  it('likeness of tools that are gone, or broken numbers, are passed over', () => {
    const odd = new Map([...likeness('play_song'), [toolKey('gone', 'gone'), 0.9], [toolKey('x', 'y'), Number.NaN]])
    expect(() => router().find('send an email to Anna', { likeness: odd })).not.toThrow()
    expect(router().find('send an email to Anna', { likeness: odd }).matches[0]).toMatchObject({ tool: 'send_email' })
  })
})

it('example requests of a tool count', () => {
  const built = router()
  expect(built.find('ring up my grandmother').matches[0]?.tool).not.toBe('dial')
  const tool = { server: 'phone', name: 'dial', description: 'Starts a session' }
  built.setServer('phone', [{ ...tool, examples: ['ring up my brother', 'phone the office'] }])
  expect(built.find('ring up my grandmother').matches[0]).toMatchObject({ tool: 'dial' })
})
