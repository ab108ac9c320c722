/**
 * Adds the server's name from mcp.json to its questions before they reach a client's user. Invariant: no line that a server has
 * written looks like one of ours. The first and the last line are ours; the server's are quoted in between, with hidden
 * characters shown. The gateway's own questions begin with OWN_QUESTION.
 */

import { ProtocolError } from '@modelcontextprotocol/server'
import type { PeerRequest, RawResult } from '../../connections/wire/call-input.ts'
import { isRecord } from '../../lib/is-record.ts'
import { showLine, showName } from './show-as-data.ts'

export const OWN_QUESTION = 'MCP Orchestrator asks for your approval.'

const LINE_BREAK = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/
/** Nobody reads more than this; it would only push the first line out of sight. */
const MAX_LINES = 200
const MAX_CHARS = 20_000
const MAX_DEPTH = 6
/** In a dialog, the text after a wide gap would look like a line of its own. */
const WIDE_GAP = / {9,}/g
const URL_ELICITATION_REQUIRED = -32_042
const INVALID_PARAMS = -32_602

/** Texts of a form that are only shown; no answer depends on them. */
const SHOWN_ONLY = new Set(['title', 'description'])

export function namedQuestion(server: string, { method, params }: PeerRequest): PeerRequest {
  if (method === 'elicitation/create') return { method, params: namedElicitation(server, params) }
  if (method !== 'sampling/createMessage') return { method, params }
  // For the client, "this server" is the gateway: the context would contain what other servers have answered.
  return { method, params: { ...params, systemPrompt: quoted(server, params.systemPrompt), includeContext: 'none' } }
}

/** A result of the newer revision may contain questions in place of an answer. */
export function withNamedQuestions(server: string, result: RawResult): RawResult {
  if (!isRecord(result.inputRequests)) return result
  const inputRequests = Object.fromEntries(
    Object.entries(result.inputRequests).map(([key, request]) => [
      key,
      isRequest(request) ? named(server, request) : request
    ])
  )
  return { ...result, inputRequests }
}

/** An error may ask the user to open an address first. */
export function withNamedElicitations(server: string, error: Error): Error {
  if (!(error instanceof ProtocolError) || error.code !== URL_ELICITATION_REQUIRED) return error
  const { elicitations } = isRecord(error.data) ? error.data : {}
  if (!Array.isArray(elicitations)) return error
  const known = elicitations.map((each) => (isRecord(each) ? namedElicitation(server, each) : each))
  return new ProtocolError(error.code, error.message, { ...(error.data as object), elicitations: known })
}

function named(server: string, request: PeerRequest & Record<string, unknown>): Record<string, unknown> {
  return { ...request, ...namedQuestion(server, request) }
}

function isRequest(value: unknown): value is PeerRequest & Record<string, unknown> {
  return isRecord(value) && typeof value.method === 'string' && isRecord(value.params)
}

function namedElicitation(server: string, params: Record<string, unknown>): Record<string, unknown> {
  const { requestedSchema, url } = params
  if (url !== undefined && !(typeof url === 'string' && /^https?:\/\//i.test(url)))
    throw new ProtocolError(INVALID_PARAMS, 'The address of an elicitation must begin with https:// or http://.')
  return {
    ...params,
    message: quoted(server, params.message),
    ...(requestedSchema === undefined
      ? {}
      : { requestedSchema: inLines(requestedSchema, `Server ${showName(server)}: `) })
  }
}

function quoted(server: string, text: unknown): string {
  const name = showName(server)
  const original = typeof text === 'string' ? text : ''
  const lines = original.slice(0, MAX_CHARS).split(LINE_BREAK)
  const kept = lines.filter((line, at) => line.trim() !== '' || lines[at - 1]?.trim() !== '').slice(0, MAX_LINES)
  const isWhole = original.length <= MAX_CHARS && lines.length <= MAX_LINES
  return [
    `Server ${name} asks:`,
    ...kept.map((line) => `> ${showLine(line).replace(WIDE_GAP, '        ')}`),
    `This was asked by the server ${name}, not by MCP Orchestrator.${isWhole ? '' : ' Its text is longer than what is shown here.'}`
  ].join('\n')
}

/** Keeps names and values, because answers consist of them. Every text that is only shown begins with its author. */
function inLines(value: unknown, by: string, depth = 0): unknown {
  if (depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map((item) => inLines(item, by, depth + 1))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (SHOWN_ONLY.has(key)) return [key, typeof item === 'string' ? by + oneLine(item) : undefined]
      if (key === 'enumNames' && Array.isArray(item))
        return [key, item.map((name) => (typeof name === 'string' ? by + oneLine(name) : by))]
      if (key === 'properties' && isRecord(item)) return [key, titled(item, by, depth + 1)]
      return [key, inLines(item, by, depth + 1)]
    })
  )
}

/** A property without a title is shown by its name, which may hide something or imitate ours. */
function titled(properties: Record<string, unknown>, by: string, depth: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const shown = inLines(property, by, depth)
      return [name, !isRecord(shown) || shown.title !== undefined ? shown : { ...shown, title: by + oneLine(name) }]
    })
  )
}

function oneLine(text: string): string {
  return showLine(text.slice(0, MAX_CHARS)).replace(WIDE_GAP, '        ')
}
