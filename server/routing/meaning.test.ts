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

/** Cosines as the model gives them: unrelated ones near 0.1, the right one above them. */
function similaritiesFor(right: string, lead = 0.3) {
  return new Map(
    Object.keys(TOOLS).map((name, at) => [
      toolKey(`${name} server`, name),
      0.05 + at * 0.02 + (name === right ? lead : 0)
    ])
  )
}

describe('a request in another language', () => {
  const request = 'wie wird es morgen draußen sein, brauche ich einen Schirm?'

  it('is not guessed without a model', () => {
    expect(router().find(request).abstained).toBe(true)
  })

  it('finds its tool with embeddings', () => {
    const { matches, abstained } = router().find(request, { similarities: similaritiesFor('current_weather') })
    expect(matches[0]).toMatchObject({ tool: 'current_weather' })
    expect(abstained).toBe(false)
    expect(matches[0]?.confidence).toBeLessThan(0.8)
  })

  it('is unaffected by embeddings that single out no tool', () => {
    expect(router().find(request, { similarities: similaritiesFor('none') }).abstained).toBe(true)
    expect(router().find(request, { similarities: new Map() }).abstained).toBe(true)
  })
})

it('abstains for small talk and function words, whatever tool is near it in meaning', () => {
  const similarities = similaritiesFor('play_song')
  for (const request of ['how are you today?', 'What can you do?', 'Hi!', 'where is it?'])
    expect(router().find(request, { similarities }).abstained).toBe(true)
})

describe('embeddings combined with words', () => {
  it('lose against a named tool', () => {
    const { matches } = router().find('use list_tables', { similarities: similaritiesFor('play_song') })
    expect(matches[0]).toMatchObject({ tool: 'list_tables' })
  })

  it('are ignored for removed tools and invalid numbers', () => {
    const odd = new Map([
      ...similaritiesFor('play_song'),
      [toolKey('gone', 'gone'), 0.9],
      [toolKey('x', 'y'), Number.NaN]
    ])
    expect(() => router().find('send an email to Anna', { similarities: odd })).not.toThrow()
    expect(router().find('send an email to Anna', { similarities: odd }).matches[0]).toMatchObject({
      tool: 'send_email'
    })
  })
})

it('counts the example requests of a tool', () => {
  const built = router()
  expect(built.find('ring up my grandmother').matches[0]?.tool).not.toBe('dial')
  const tool = { server: 'phone', name: 'dial', description: 'Starts a session' }
  built.setServer('phone', [{ ...tool, examples: ['ring up my brother', 'phone the office'] }])
  expect(built.find('ring up my grandmother').matches[0]).toMatchObject({ tool: 'dial' })
})
