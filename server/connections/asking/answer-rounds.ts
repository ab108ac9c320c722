import { CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY } from '@modelcontextprotocol/client'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { CallInput, RawResult } from '../wire/call-input.ts'
import { CHAT_CAPABILITIES, LOG_LEVEL } from './call-scopes.ts'

const MAX_ROUNDS = 10
const MAX_QUESTIONS = 10

/**
 * A call on a server of the newer revision, which asks with its result: the questions are answered, and the call is sent again with
 * the answers until there is a result.
 */
export async function answerRounds(
  input: CallInput,
  call: (input: CallInput) => Promise<RawResult>
): Promise<RawResult> {
  const meta = { ...input.meta, [CLIENT_CAPABILITIES_META_KEY]: CHAT_CAPABILITIES, [LOG_LEVEL_META_KEY]: LOG_LEVEL }
  let retry = input.retry
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const result = await call({ ...input, meta, retry })
    const { resultType, inputRequests, requestState } = result
    if (resultType !== 'input_required') return result
    const inputResponses = await answersTo(isRecord(inputRequests) ? inputRequests : {}, input)
    retry = { inputResponses, ...(typeof requestState === 'string' ? { requestState } : {}) }
  }
  throw unanswerable('It asks again and again.')
}

async function answersTo(requests: Record<string, unknown>, input: CallInput): Promise<Record<string, unknown>> {
  const asked = Object.entries(requests)
  if (asked.length > MAX_QUESTIONS) throw unanswerable(`It asks ${asked.length} questions at once.`)
  const answers: [string, unknown][] = []
  for (const [key, request] of asked) {
    const { method, params } = isRecord(request) ? request : {}
    if (method !== 'elicitation/create' || input.onRequest === undefined)
      throw unanswerable('It asks for something that only another client could give.')
    answers.push([key, await input.onRequest({ method, params: isRecord(params) ? params : {} }, input.signal)])
  }
  return Object.fromEntries(answers)
}

function unanswerable(why: string): AppError {
  return new AppError('unavailable', 'child_answer_invalid', `The server could not finish the call. ${why}`)
}
