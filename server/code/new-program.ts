/** Checks a program that a client or a model has sent, and adds what its replay needs. */
import { randomInt } from 'node:crypto'
import { CODE_LIMITS } from '../../workspace-server/code/code-protocol.ts'
import { AppError } from '../lib/errors.ts'
import { DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS } from './program-page.ts'
import { programHash } from './run-departure.ts'
import type { Program } from './run-log.ts'

export function newProgram({
  code: given,
  timeoutMs = DEFAULT_TIMEOUT_MS
}: {
  code?: unknown
  timeoutMs?: unknown
}): Program {
  if (typeof given !== 'string' || given.length > CODE_LIMITS.codeChars)
    throw invalid(`Give "code", with at most ${CODE_LIMITS.codeChars} characters.`)
  const code = withoutFence(given)
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= MIN_TIMEOUT_MS && timeoutMs <= MAX_TIMEOUT_MS))
    throw invalid(`"timeoutMs" must be a number from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}.`)
  return { code, hash: programHash(code), seed: randomInt(2 ** 32), startedAt: Date.now(), timeoutMs }
}

/** Models put code between lines of backquotes, also where only code is wanted. The lines keep their numbers. */
function withoutFence(code: string): string {
  const text = code.trimEnd()
  const start = code.indexOf('```')
  const firstEnd = text.indexOf('\n', start)
  const isFenced = start >= 0 && text.slice(0, start).trim() === '' && text.endsWith('\n```')
  if (!isFenced || !/^```\w*\s*$/.test(text.slice(start, firstEnd))) return code
  return text.slice(0, start) + text.slice(firstEnd, -4)
}

function invalid(message: string): AppError {
  return new AppError('invalid', 'invalid_request', message)
}
