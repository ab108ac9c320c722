/** Reads on in what a program of a chat has returned and printed beyond the bound of its answer. */
import { afterEach, expect, it } from 'vitest'
import { localRealm } from '../../../code/realms/local-realm.fixture.ts'
import { chatLogIds } from '../../../code/run-log.ts'
import type { StepEvent } from '../../../models/port.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

const CODE = `console.log('y'.repeat(19_000)); Array.from({ length: 9000 }, (_, n) => 'row ' + n)`
let chat: FakeChat
afterEach(() => chat.close())

/** A model that makes these calls of `run_code`, one after another. Resolves to their results. */
async function results(...calls: object[]): Promise<Record<string, unknown>[]> {
  chat = await fakeChat({
    programs: { openRealm: async () => localRealm(), lingerMs: 5, pollMs: 2 },
    model: (_, step): StepEvent[] => {
      const call = calls[step]
      return call ? [called('run_code', JSON.stringify(call), `call-${step}`)] : [said('over')]
    }
  })
  const given: Record<string, unknown>[] = []
  const sent = chat.chat.send('s1', { text: 'go', id: undefined })
  for (let at = 0; at < calls.length; at++) {
    const { data } = await chat.until('tool:result', ({ callId }) => callId === `call-${at}`)
    const [part] = data.content as { text: string }[]
    given.push(readJson(part?.text ?? ''))
  }
  await sent
  await chat.until('turn:end')
  return given
}

function readJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text)
  } catch {
    return { error: text }
  }
}

// Checked: if the outcome is not kept, the second call says that nothing is.
it('gives the model the rest of a value and of its output, and puts no file into the workspace', async () => {
  const [first, ...rest] = await results(
    { code: CODE },
    { from: 32_000 },
    { from: 64_000 },
    { from: 96_000 },
    { from: 0, of: 'logs' }
  )
  expect(first).toMatchObject({
    cut: expect.stringMatching(/has \d+ characters.*run_code \{"from":32000\}/),
    logs: expect.stringMatching(/^\[3000 characters cut. Read on with run_code \{"from":0,"of":"logs"\}/)
  })
  const value = [first?.value, ...rest.slice(0, 3).map(({ text }) => text)].join('')
  expect(JSON.parse(value)).toHaveLength(9000)
  expect(rest[2]?.next).toBeUndefined()
  expect(rest[3]).toMatchObject({ text: 'y'.repeat(19_000), chars: 19_000 })
  const { calls } = await chat.chat.transcript('s1')
  expect(Object.values(calls).map(({ name, decision }) => [name, decision?.by])).toEqual(
    Array(5).fill(['run_code', 'policy'])
  )
})

it('keeps only the outcome of the last program, and counts it in the size of the conversation', async () => {
  const given = await results(
    { from: 0 },
    { code: CODE },
    { from: 1e9 },
    { from: 0, of: 'files' },
    { code: '7' },
    { from: 0 }
  )
  expect(given.map(({ error }) => error)).toEqual([
    expect.stringContaining('Nothing is kept'),
    undefined,
    expect.stringContaining('"from" must be'),
    expect.stringContaining('"of" must be'),
    undefined,
    expect.stringContaining('Nothing is kept')
  ])
  await chat.close()
  await results({ code: CODE })
  expect(await chat.store.events.bytes(chatLogIds(['s1']).slice(2))).toBeGreaterThan(100_000)
})
