import { expect, it } from 'vitest'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import { describeNotes, toolNotes } from './servers-notes.ts'

const entry = { name: 'desk' } as ServerEntry
const tools = ['a', 'b', 'c'].map((name) => ({ name }))
const index = { tools: () => tools, record: () => undefined }
type Core = Parameters<typeof toolNotes>[1]
const notesWith = (enrichment: object | undefined) => toolNotes(entry, { index, enrichment } as unknown as Core)

it('says how many tools can be found by meaning, while some are missing', async () => {
  const notes = await notesWith({ embedded: () => 1 })
  expect(notes).toEqual({ embedded: { done: 1, of: 3 } })
  expect(describeNotes('desk', notes).join()).toContain('1 of 3 tools can be found by meaning')
  expect(await notesWith({ embedded: () => 3 })).toEqual({})
  expect(await notesWith({ embedded: () => undefined })).toEqual({})
  expect(await notesWith(undefined)).toEqual({})
})
