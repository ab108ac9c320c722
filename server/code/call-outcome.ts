import { CODE_LIMITS } from '../../workspace-server/code/code-protocol.ts'
import { isRecord } from '../lib/is-record.ts'
import type { CallOutcome } from './program-call.ts'

/** Turns a tool's result into what a program gets: the structured result, or the text. Other content is given as it is. */
export function outcomeOf(result: Record<string, unknown> | { content: unknown[] }): CallOutcome {
  const { content: given, resultType, isError, structuredContent }: Record<string, unknown> = { ...result }
  const content: unknown[] = Array.isArray(given) ? given : []
  const texts = content.map((part) => (isRecord(part) && part.type === 'text' ? String(part.text) : undefined))
  const text = texts.filter((part) => part !== undefined).join('\n')
  if (resultType === 'input_required') {
    const message = 'The server wants to ask the user something, which is not possible in a program. Call it directly.'
    return { ok: false, code: 'input_required', message }
  }
  if (isError === true) return { ok: false, code: 'tool_failed', message: text || 'The tool failed.' }
  if (isRecord(structuredContent)) return { ok: true, value: structuredContent }
  return { ok: true, value: texts.includes(undefined) ? content : text }
}

/** A program may write `tools.my_server` for "my-server". Returns undefined if no name fits, or several do. */
export function namedLike<T extends { name: string }>(items: readonly T[], name: string): T | undefined {
  const exact = items.find((item) => item.name === name)
  if (exact) return exact
  const like = items.filter((item) => item.name.replace(/[^\w$]/g, '_') === name)
  return like.length === 1 ? like[0] : undefined
}

/** The outcome, or an error if its result is too long, by itself or together with the `before` characters of earlier results. */
export function boundedOutcome(outcome: CallOutcome, before: number): CallOutcome {
  if (!outcome.ok) return outcome
  const chars = JSON.stringify(outcome.value)?.length ?? 0
  const isTooLong = chars > CODE_LIMITS.resultChars
  if (!isTooLong && before + chars <= CODE_LIMITS.allResultsChars) return outcome
  const [what, limit] = isTooLong
    ? [`The result has ${chars} characters`, CODE_LIMITS.resultChars]
    : ['The results of this run are too long', CODE_LIMITS.allResultsChars]
  return { ok: false, code: 'code_too_much', message: `${what}; the limit is ${limit}. Ask the tool for less.` }
}
