import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SessionAccess } from '../access/session-access.ts'
import { type FakeChat, fakeChat } from '../chat/fake-chat.ts'
import { type SearchLimits, SessionSearch } from './session-search.ts'

let fake: FakeChat
let access: SessionAccess
beforeEach(async () => {
  fake = await fakeChat()
  access = new SessionAccess(fake.store.keyValues, { MAX_OWNER_SESSIONS: 100, MAX_ADDRESS_SESSIONS: 1000 })
})
afterEach(() => fake.close())

async function conversation(id: string, owner: string, texts: string[], usedAt = Date.now()): Promise<void> {
  await access.open(id, { owner })
  const events = texts.map((text, at) =>
    at % 2
      ? { type: 'agent:response', data: { turnId: 't1', text } }
      : { type: 'user:message', data: { turnId: 't1', text } }
  )
  const noise = {
    type: 'tool:result',
    data: { callId: 'c', isError: false, content: [{ type: 'text', text: 'needle' }] }
  }
  await fake.store.events.append(id, [...events, noise])
  await access.noteUse(id, usedAt)
}

type Where = Partial<SearchLimits> & { owner?: string; session?: string }
async function find(text: string, { owner = 'me', session, ...limits }: Where = {}) {
  const summary = async (sessionId: string) => ({ sessionId }) as never
  const search = new SessionSearch({ access, events: fake.store.events, summary, limits })
  const { hits, isComplete } = await search.find(owner, text, session)
  return { isComplete, found: hits.map(({ summary: { sessionId }, ...found }) => ({ sessionId, ...found })) }
}
const idsOf = (result: Awaited<ReturnType<typeof find>>) => result.found.map(({ sessionId }) => sessionId)

describe('the search', () => {
  it('finds messages with all words in any case and order, newest session first, with the text around', async () => {
    // Stored apart from the log, because it is long.
    const long = `${'before '.repeat(50)}a NEEDLE in\nthe hay${' after'.repeat(20_000)}`
    await conversation('older', 'me', ['nothing', 'one needle', 'hay and needles', 'x', 'needle 3', 'needle 4'], 1)
    await conversation('newer', 'me', ['Where is it?', long], 2)
    await conversation('theirs', 'someone else', ['needle in hay'], 3)
    await conversation('half', 'me', ['only hay', 'a needle in another message'], 4)
    const both = await find('Hay  needle')
    expect(idsOf(both)).toEqual(['newer', 'older'])
    const [match] = both.found[0]?.matches ?? []
    expect(match).toMatchObject({ seq: 2, by: 'agent', match: 'hay' })
    expect(match?.before).toMatch(/^….{15,45}a NEEDLE in the $/)
    expect(match?.after).toMatch(/^ after.*…$/)
    const older = (await find('needle')).found.find(({ sessionId }) => sessionId === 'older')
    expect(older?.matches.map(({ seq }) => seq)).toEqual([6, 5, 3])
    expect(idsOf(await find('needle', { owner: 'nobody' }))).toEqual([])
  })

  it('counts all matches of a session, and gives all of them if it is the only one that is searched', async () => {
    await conversation(
      'one',
      'me',
      Array.from({ length: 20 }, (_, at) => `needle ${at}`)
    )
    await conversation('two', 'me', ['needle'])
    await conversation('theirs', 'someone else', ['needle'])
    const all = (await find('needle')).found.find(({ sessionId }) => sessionId === 'one')
    expect(all).toMatchObject({ total: 20, matches: { length: 3 } })
    const [one, ...others] = (await find('needle', { session: 'one' })).found
    expect(one?.matches.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, at) => 20 - at))
    expect(others).toEqual([])
    expect((await find('needle', { session: 'theirs' })).found).toEqual([])
  })

  // Seen before: commands, paths and comments were never found.
  it('finds commands and paths of calls, however large, and comments on reviews', async () => {
    await conversation('calls', 'me', ['hello'])
    const call = { turnId: 't1', server: 'workspace', definition: '', hash: 'h', queuePosition: 1, totalInQueue: 1 }
    const changes = { changeId: 'review:r', hash: 'h', total: 1, files: [] }
    await fake.store.events.append('calls', [
      {
        type: 'tool:approval_required',
        data: { ...call, callId: 'a', name: 'execute_command', args: { command: 'npm run zebra' } }
      },
      {
        type: 'tool:approval_required',
        data: {
          ...call,
          callId: 'b',
          name: 'write_file',
          args: { path: 'src/giraffe.ts', content: 'x'.repeat(200_000) }
        }
      },
      { type: 'review:opened', data: { reviewId: 'r', turnId: 't1', changes } },
      {
        type: 'review:resolved',
        data: { reviewId: 'r', hash: 'h', accept: 'none', by: 'human', comment: 'Please use tabs.' }
      }
    ])
    const only = async (text: string) => (await find(text)).found[0]?.matches
    expect(await only('zebra')).toMatchObject([{ by: 'call', seq: 3, match: 'zebra' }])
    expect(await only('giraffe.ts')).toMatchObject([{ by: 'call', seq: 4 }])
    expect(await only('use tabs')).toMatchObject([{ by: 'review', seq: 5, after: ' tabs.' }])
  })

  it('matches punctuation literally, ignores accents and case, and searches titles', async () => {
    await conversation('s-a', 'me', ['a.*b (c) [d] \\e', 'ﬁne Café, STRASSE 💥'])
    await conversation('s-b', 'me', ['axxb'])
    await access.rename('s-b', 'About Rome')
    expect(idsOf(await find('a.*b'))).toEqual(['s-a'])
    expect(idsOf(await find('(c) [d] \\e'))).toEqual(['s-a'])
    expect(idsOf(await find('Fine cafe\u0301 💥'))).toEqual(['s-a'])
    expect((await find('rome')).found).toEqual([{ sessionId: 's-b', matches: [], total: 0 }])
    for (const text of ['', '   ', 'a b c d e f g h i', 'x'.repeat(201)])
      await expect(find(text)).rejects.toMatchObject({ code: 'invalid_search' })
  })

  it('stops at its limits and says so, but knows all titles', async () => {
    for (let at = 0; at < 6; at++) await conversation(`s-${at}`, 'me', ['needle', 'x'.repeat(100)], at + 1)
    await access.rename('s-0', 'needle in the title')
    const cut = await find('needle', { chars: 250 })
    expect(cut.isComplete).toBe(false)
    expect(idsOf(cut)).toEqual(['s-5', 's-4', 's-3', 's-0'])
    expect(await find('needle', { ms: -1 })).toMatchObject({ isComplete: false, found: [{ sessionId: 's-0' }] })
    const few = await find('needle', { hits: 2 })
    expect(few.isComplete).toBe(false)
    expect(idsOf(few)).toEqual(['s-5', 's-4'])
    expect((await find('needle')).isComplete).toBe(true)
  })
})
