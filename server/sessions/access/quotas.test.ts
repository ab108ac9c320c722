import { afterEach, expect, it } from 'vitest'
import { chatLogIds } from '../../code/run-log.ts'
import { AppError } from '../../lib/errors.ts'
import { called, type FakeChat, fakeChat, said } from '../chat/fake-chat.ts'
import { Quotas } from './quotas.ts'
import { SessionAccess } from './session-access.ts'

const MB = 1024 * 1024
const LIMITS = {
  ...{ MAX_OWNER_FILES_MB: 10, MAX_FILES_MB: 20, MAX_SESSION_LOG_MB: 1, MAX_OWNER_LOG_MB: 2, MAX_LOG_MB: 3 },
  MAX_STORED_SESSIONS: 5
}

let fake: FakeChat | undefined
afterEach(async () => {
  await fake?.close()
  fake = undefined
})

/** Quotas over a real event log; files weigh what the test says. */
async function open() {
  fake = await fakeChat()
  const { store } = fake
  const files = new Map<string, number>()
  const access = new SessionAccess(
    store.keyValues,
    { MAX_OWNER_SESSIONS: 100, MAX_ADDRESS_SESSIONS: 1000 },
    { checkOpen: () => quotas.checkOpen() }
  )
  const checkpoints = {
    bytes: async (ids: readonly string[] = [...files.keys()]) => ids.reduce((sum, id) => sum + (files.get(id) ?? 0), 0)
  }
  const quotas: Quotas = new Quotas({ access, events: store.events, checkpoints, store: store.sessions }, LIMITS)
  let fills = 0
  // Each text is another one, because a session stores the same text once.
  const fill = (id: string, bytes: number) =>
    store.events.append(id, [{ type: 'x', data: { text: `${++fills}`.padEnd(bytes, 'x') } }])
  for (const id of ['a1', 'a2', 'a3']) await access.open(id, { owner: 'a' })
  for (const id of ['b1', 'b2']) await access.open(id, { owner: 'b' })
  return {
    store,
    access,
    files,
    quotas,
    fill,
    refusal: (id: string) => quotas.checkWork(id).catch((error) => error.code)
  }
}

// Checked: without the check, every message is accepted.
it('refuses new work when a conversation, an owner or all are over the limit, until something is deleted', async () => {
  const { store, fill, refusal } = await open()
  expect(await refusal('a1')).toBeUndefined()
  for (let i = 0; i < 2; i++) await fill('a1', 0.6 * MB)
  expect(await refusal('a1')).toBe('quota_session_log')
  expect(await refusal('a2')).toBeUndefined()
  await fill('a2', 0.9 * MB)
  expect(await refusal('a2')).toBe('quota_owner_log')
  expect(await refusal('b1')).toBeUndefined()
  await fill('b2', 0.95 * MB)
  expect(await refusal('b1')).toBe('quota_log')
  await store.events.remove('a1')
  for (const id of ['a2', 'b1']) expect(await refusal(id)).toBeUndefined()
})

// Checked: only the conversation itself was counted, and a program in it could store any number of megabytes.
it('counts the log of a program that runs in the conversation', async () => {
  const { fill, refusal } = await open()
  const [, log = ''] = chatLogIds(['a1'])
  for (let i = 0; i < 2; i++) await fill(log, 0.6 * MB)
  expect(await refusal('a1')).toBe('quota_session_log')
  await fill('a2', 0.9 * MB)
  expect(await refusal('a2')).toBe('quota_owner_log')
})

it('refuses new work by size of the files, and sessions by their number', async () => {
  const { files, refusal, access, store } = await open()
  files.set('a1', 6 * MB).set('a2', 5 * MB)
  for (const id of ['a1', 'a3']) expect(await refusal(id)).toBe('quota_owner_files')
  expect(await refusal('b1')).toBeUndefined()
  files.set('b1', 9.5 * MB)
  expect(await refusal('b1')).toBe('quota_files')
  files.delete('a1')
  for (const id of ['a1', 'b1']) expect(await refusal(id)).toBeUndefined()
  for (let i = 0; i < 5; i++) await store.sessions.acquire(`s${i}`, 'here', 1000)
  await expect(access.open('new', { owner: 'c' })).rejects.toMatchObject({ code: 'too_many_stored_sessions' })
  await access.open('a1', { owner: 'a' })
})

it('answers approved calls without running them, ends the turn with the reason, and takes no message', async () => {
  let isFull = false
  let ran = 0
  const source = {
    server: 'mail',
    list: async () => [{ name: 'send', inputSchema: { type: 'object' } }],
    call: async () => {
      ran += 1
      return { content: [] }
    }
  }
  fake = await fakeChat({
    model: (_, step) => (step === 0 ? [called('mail__send', '{}', 'c1')] : [said('done')]),
    sources: [source],
    async checkQuota() {
      if (isFull) throw new AppError('unavailable', 'quota_owner_files', 'Your files are too large.')
    }
  })
  const { chat, until, log } = fake
  await chat.send('s1', { text: 'go' })
  await until('tool:approval_required')
  isFull = true
  await chat.decide('s1', { callId: 'c1', approved: true })
  expect((await until('agent:error')).data).toMatchObject({ code: 'quota_owner_files' })
  await until('turn:end')
  expect((await until('tool:result')).data).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: 'It was not run: Your files are too large.' }]
  })
  expect(ran).toBe(0)
  const length = (await log()).length
  await expect(chat.send('s1', { text: 'more' })).rejects.toMatchObject({ code: 'quota_owner_files' })
  expect(await log()).toHaveLength(length)
  isFull = false
  await chat.send('s1', { text: 'more' })
})

it('measures what is used once for all who ask within a minute, and again after a failure', async () => {
  let measured = 0
  let isAway = true
  const count = async () => {
    measured++
    if (isAway) throw new AppError('unavailable', 'store_unavailable', 'Away.')
    return 4
  }
  const bytes = async () => 7
  const access = { siblings: async () => [] }
  const quotas = new Quotas({ access, events: { bytes }, checkpoints: { bytes }, store: { count } }, LIMITS)
  await expect(quotas.use()).rejects.toMatchObject({ code: 'store_unavailable' })
  isAway = false
  const used = await Promise.all([quotas.use(), quotas.use()])
  expect(used).toEqual([await quotas.use(), { files: 7, log: 7, sessions: 4 }])
  expect(measured).toBe(2)
  expect(quotas.limits).toEqual({ files: 20 * MB, log: 3 * MB, sessions: 5 })
})
