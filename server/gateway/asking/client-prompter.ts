/**
 * Asks the client behind a call while the call waits: its user a question, or its model for a text. How depends on the revision:
 * clients of the older ones get a request from us; those of the newer one get a result that says what is needed, and call again
 * with it.
 */

import { createHash } from 'node:crypto'
import {
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext
} from '@modelcontextprotocol/server'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { Continuation, Continuations } from './continuations.ts'

interface Question {
  /** Hash of everything that the answer is about: an answer to another question does not count. */
  about: string
  message: string
  choices: [first: string, ...others: string[]]
}

export interface TextRequest {
  about: string
  system: string
  prompt: string
  maxTokens: number
}

/** A missing method means that the client can't be asked for that. */
export interface ClientPrompter {
  /** Resolves to one of the choices, or null if the user declined to answer. */
  choose?(question: Question, signal: AbortSignal): Promise<string | null>
  write?(textRequest: TextRequest, signal: AbortSignal): Promise<string>
}

/** People take their time; the caller's own deadline is in the signal. */
const MAX_WAIT_MS = 24 * 3600_000
const MAX_TEXT = 16_000
const KEY = 'answer'
const ACTIONS = new Set<unknown>(['accept', 'decline', 'cancel'])

/** For clients of the older revisions, over a connection that carries requests both ways. */
export function pushPrompter(server: Server): ClientPrompter {
  return askingPrompter(server.getClientCapabilities(), (request, signal) =>
    server.request(request, { signal, timeout: MAX_WAIT_MS })
  )
}

/** Builds a prompter from a function that sends requests to the client. */
export function askingPrompter(
  capabilities: unknown,
  ask: (request: ReturnType<typeof elicitation> | ReturnType<typeof sampling>, signal: AbortSignal) => Promise<unknown>
): ClientPrompter {
  return prompterOf(capabilities, {
    choose: async (question, signal) => readChoice(await ask(elicitation(question), signal), question),
    write: async (textRequest, signal) => readText(await ask(sampling(textRequest), signal))
  })
}

/** Thrown if the client must make the call again with the requested input. */
export class InputNeeded extends Error {
  readonly request: InputRequest
  readonly state: Omit<Continuation, 'call'>

  constructor(request: InputRequest, state: Omit<Continuation, 'call'>) {
    super('The client has to answer first.')
    this.request = request
    this.state = state
  }
}

export interface Round {
  continuations: () => Promise<Continuations>
  /** `callHash` of the caller, tool and arguments: a continuation belongs to one call. */
  call: string
}

export function callHash(parts: unknown[]): string {
  return createHash('sha256').update(canonicalJson(parts)).digest('base64url')
}

/** Runs a `tools/call` with the prompter for its client. */
export async function withPrompter<T extends object>(
  server: Server,
  { mcpReq }: ServerContext,
  round: Round,
  work: (prompter: ClientPrompter) => Promise<T>
): Promise<T | InputRequiredResult> {
  if (mcpReq.envelope === undefined) return work(pushPrompter(server))
  const { [CLIENT_CAPABILITIES_META_KEY]: capabilities }: Record<string, unknown> = { ...mcpReq.envelope }
  const state = mcpReq.requestState<Continuation>()
  if (state !== undefined && state.call !== round.call) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, stale().message)
  }
  try {
    return await work(roundsPrompter(capabilities, state, mcpReq.inputResponses?.[KEY]))
  } catch (error) {
    if (!(error instanceof InputNeeded)) throw error
    const requestState = await (await round.continuations()).mint({ ...error.state, call: round.call })
    return inputRequired({ inputRequests: { [KEY]: error.request }, requestState })
  }
}

/** For clients of the newer revision: answers of earlier rounds travel in the continuation. */
function roundsPrompter(
  capabilities: unknown,
  state: Omit<Continuation, 'call'> | undefined,
  response: unknown
): ClientPrompter {
  const answers = { ...state?.answers }
  let isUsed = state === undefined
  const answerTo = <T extends string | null>(about: string, request: InputRequest, read: () => T) => {
    const earlier = answers[about]
    if (earlier !== undefined) return earlier
    if (state?.asked === about) {
      isUsed = true
      const answer = read()
      answers[about] = answer
      return answer
    }
    if (!isUsed) throw stale()
    throw new InputNeeded(request, { asked: about, answers })
  }
  return prompterOf(capabilities, {
    choose: async (question) => answerTo(question.about, elicitation(question), () => readChoice(response, question)),
    write: async (asked) => answerTo(asked.about, sampling(asked), () => readText(response)) ?? ''
  })
}

function prompterOf(capabilities: unknown, whole: Required<ClientPrompter>): ClientPrompter {
  const { elicitation: forms, sampling: texts } = isRecord(capabilities) ? capabilities : {}
  // An empty capability dates from when only forms existed.
  const hasForms = isRecord(forms) && (forms.form !== undefined || forms.url === undefined)
  return { ...(hasForms ? { choose: whole.choose } : {}), ...(isRecord(texts) ? { write: whole.write } : {}) }
}

function elicitation({ message, choices }: Question) {
  const answer = { type: 'string' as const, title: 'Your answer', enum: choices }
  const requestedSchema = { type: 'object' as const, properties: { answer }, required: ['answer'] }
  return { method: 'elicitation/create' as const, params: { mode: 'form' as const, message, requestedSchema } }
}

function sampling({ system, prompt, maxTokens }: TextRequest) {
  const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: prompt } }]
  return {
    method: 'sampling/createMessage' as const,
    params: { systemPrompt: system, messages, maxTokens, temperature: 0 }
  }
}

/** Reads the client's unchecked answer. */
function readChoice(response: unknown, { choices }: Question): string | null {
  if (!isRecord(response) || !ACTIONS.has(response.action)) throw clientCouldNotAsk()
  if (response.action !== 'accept' || !isRecord(response.content)) return null
  const { answer } = response.content
  return choices.find((choice) => choice === answer) ?? null
}

function readText(response: unknown): string {
  const content = isRecord(response) ? response.content : undefined
  const parts: unknown[] = Array.isArray(content) ? content : [content]
  const texts = parts.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : ''))
  return texts.join('').slice(0, MAX_TEXT)
}

/** The client announced that it can ask, but answered with an error or with nonsense. */
export function clientCouldNotAsk(): AppError {
  const message =
    'Nothing was run: this call needs approval, and your client could not ask for it. Update the client, or run "mcp-orchestrator serve" on the same store and use a client without forms, so that the web page asks.'
  return new AppError('forbidden', 'approval_unavailable', message)
}

function stale(): AppError {
  return new AppError('conflict', 'approval_stale', 'This answer belongs to another question. Make the call again.')
}
