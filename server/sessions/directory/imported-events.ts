/**
 * Turns an exported conversation into events for a new session. The file is hostile: everything is checked and bounded, nothing in
 * it runs, and no approval, permission, setting or token count is taken over. Calls become history that nobody can decide.
 */
import { z } from 'zod'
import { partType } from '../../../contract/stored-files.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { endOf, noticeOf } from '../turns/turn-events.ts'
import { cleanTitle } from './session-titles.ts'

const MAX_ENTRIES = 10_000
const MAX_TEXT_CHARS = 1_000_000
const MAX_OUTPUT_CHARS = 200_000
const MAX_ARGS_CHARS = 200_000
const MAX_NAME_CHARS = 200
const MAX_DEPTH = 64
/** Maximum number of parts of a result. Each becomes text that may be longer than the part was. */
const MAX_PARTS = 1000

const name = z.string().transform((text) => headOf(text, MAX_NAME_CHARS))
const call = z.object({
  server: name,
  name,
  args: z.record(z.string(), z.unknown()),
  decision: z.object({ editedArgs: z.record(z.string(), z.unknown()).optional() }).optional(),
  result: z.object({ isError: z.boolean(), content: z.array(z.unknown()) }).optional()
})
/** Entries of other kinds are left out, so that files of later versions can be read. */
const entry = z.looseObject({
  kind: z.string(),
  text: z.string().optional(),
  callId: z.string().optional(),
  superseded: z.boolean().optional(),
  rewound: z.boolean().optional()
})
const file = z.object({
  summary: z.object({ title: z.string().optional() }).optional(),
  conversation: z.object({ entries: z.array(entry).max(MAX_ENTRIES), calls: z.record(z.string(), z.unknown()) })
})

type Conversation = z.infer<typeof file>['conversation']

export interface ImportedConversation {
  title: string
  events: NewEvent[]
}

export function importedEvents(value: unknown): ImportedConversation {
  const { data } = isTooDeep(value, MAX_DEPTH) ? { data: undefined } : file.safeParse(value)
  const events = data ? eventsOf(data.conversation) : []
  if (!data || events.length === 0) {
    const message = `This file is not a conversation exported as JSON, has no messages, or has more than ${MAX_ENTRIES} entries.`
    throw new AppError('invalid', 'invalid_import', message)
  }
  const notice =
    'This conversation was imported from a file. Nobody has checked what it says, and its calls did not run here.'
  return { title: cleanTitle(data.summary?.title ?? ''), events: [noticeOf('imported', notice), ...events] }
}

function eventsOf({ entries, calls }: Conversation): NewEvent[] {
  const events: NewEvent[] = []
  let turns = 0
  /** A small file could repeat one large call thousands of times. */
  const imported = new Set<string>()
  const end = () => (turns === 0 ? [] : [endOf(`t${turns}`, 'done')])
  for (const { kind, text = '', callId = '', superseded, rewound } of entries) {
    if (superseded || rewound) continue
    if (kind === 'user') {
      events.push(...end())
      turns += 1
      events.push({ type: 'user:message', data: { turnId: `t${turns}`, text: bounded(text) }, key: `turn:${turns}` })
    }
    // Answers before the first message belong to no turn.
    if (turns === 0) continue
    if (kind === 'agent' && text !== '')
      events.push({ type: 'agent:response', data: { turnId: `t${turns}`, text: bounded(text) } })
    if (kind === 'call' && Object.hasOwn(calls, callId) && !imported.has(callId)) {
      imported.add(callId)
      events.push(...callEvents(calls[callId], `imported-${imported.size}`, `t${turns}`))
    }
  }
  return [...events, ...end()]
}

/** Never approved, so that no code can take it for a call that must still run. */
function callEvents(value: unknown, callId: string, turnId: string): NewEvent[] {
  const { data } = call.safeParse(value)
  if (!data) return []
  const { server, name: tool, args, decision, result } = data
  const shown = { args: boundedArgs(decision?.editedArgs ?? args), definition: '', hash: '' }
  const place = { queuePosition: 1, totalInQueue: 1 }
  return [
    { type: 'tool:approval_required', data: { callId, turnId, server, name: tool, ...shown, ...place } },
    { type: 'tool:approval_resolved', data: { callId, approved: false, by: 'imported' } },
    ...(result ? [{ type: 'tool:result', data: { callId, ...boundedResult(result) } }] : [])
  ]
}

/** Only texts: anything else may refer to files that this server does not have. */
function boundedResult({ isError, content }: NonNullable<z.infer<typeof call>['result']>) {
  const texts = content.slice(0, MAX_PARTS).map((part) => {
    const { text } = isRecord(part) ? part : {}
    return typeof text === 'string' ? text : `[${partType(part)}]`
  })
  return { isError, content: [{ type: 'text', text: headOf(texts.join('\n'), MAX_OUTPUT_CHARS).toWellFormed() }] }
}

function boundedArgs(args: Record<string, unknown>): Record<string, unknown> {
  const json = JSON.stringify(args)
  return json.length <= MAX_ARGS_CHARS ? args : { shortened: headOf(json, MAX_ARGS_CHARS) }
}

function bounded(text: string): string {
  return headOf(text, MAX_TEXT_CHARS).toWellFormed()
}

function isTooDeep(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((item) => isTooDeep(item, levels - 1))
}
