/**
 * The four vendors' rules for a request, as strict as the strictest of their models. Returns the broken rules of one request, in
 * words. `Issued` knows which signatures a vendor has given out, so that a request must send them back unchanged.
 */
import { isDeepStrictEqual } from 'node:util'

export type VendorName = 'anthropic' | 'gemini' | 'openai responses' | 'openai-compatible chat'

export interface IssuedCall {
  vendor: VendorName
  /** The signature that belongs to the call's step, on its first call. */
  signature?: string | undefined
  isFirst: boolean
  /** Signatures must come back only while the conversation stays with its model. */
  era: number
}

export interface Issued {
  /** Signatures with the thought that they sign. */
  signatures: Map<string, { vendor: VendorName; text: string }>
  /** Calls by the number in their arguments. */
  calls: Map<number, IssuedCall>
  era(): number
}

type Json = Record<string, unknown>
type Report = (rule: string) => void

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : [])
const object = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

export function brokenRules(vendor: VendorName, body: unknown, issued: Issued): string[] {
  const broken: string[] = []
  const report: Report = (rule) => broken.push(rule)
  eachString(body, (value) => {
    if (!value.isWellFormed()) report('a lone surrogate')
  })
  RULES[vendor](object(body), report, issued)
  return [...new Set(broken)]
}

const RULES: Record<VendorName, (body: Json, report: Report, issued: Issued) => void> = {
  anthropic: anthropicRules,
  gemini: geminiRules,
  'openai responses': responsesRules,
  'openai-compatible chat': chatRules
}

function eachString(value: unknown, visit: (value: string) => void): void {
  if (typeof value === 'string') visit(value)
  else if (typeof value === 'object' && value !== null)
    for (const [key, item] of Object.entries(value)) {
      visit(key)
      eachString(item, visit)
    }
}

function anthropicRules(body: Json, report: Report, issued: Issued): void {
  const messages = list(body.messages)
  rolesAlternate(messages, ['user', 'assistant'], report)
  if (messages.at(-1)?.role !== 'user') report('the last message is not of the user')
  const ids = new Set<string>()
  let marks = 0
  let open: string[] = []
  for (const { role, content } of messages) {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
    if (blocks.length === 0) report('an empty content')
    const results = blocks.filter(({ type }) => type === 'tool_result')
    const answered = results.map(({ tool_use_id }) => text(tool_use_id))
    if (!isDeepStrictEqual([...answered].sort(), [...open].sort()))
      report('results that do not match the calls before them')
    if (blocks.findLastIndex(({ type }) => type === 'tool_result') >= results.length)
      report('results after other content')
    open = []
    for (const block of blocks) {
      if (block.cache_control) marks += 1
      if (block.type === 'text' && text(block.text).trim() === '') report('an empty text')
      if (block.type !== 'tool_use') continue
      const id = text(block.id)
      if (role !== 'assistant') report('a call of the user')
      if (!/^[a-zA-Z0-9_-]+$/.test(id)) report(`a call id that is not allowed: ${id}`)
      if (!/^[a-zA-Z0-9_-]{1,128}$/.test(text(block.name))) report('a tool name that is not allowed')
      if (ids.has(id)) report('a call id that is used twice')
      ids.add(id)
      open.push(id)
      const signatures = blocks.filter(({ type }) => type === 'thinking').map(({ signature }) => signature)
      signed(object(block.input), 'anthropic', (signature) => signatures.includes(signature), report, issued)
    }
    const lastBlock = blocks.at(-1)
    if (role === 'assistant' && lastBlock?.type === 'thinking') report('a thought at the end of an answer')
    for (const { type, thinking, signature } of blocks)
      if (type === 'thinking') genuine('anthropic', signature, thinking, report, issued)
  }
  marks += list(body.system).filter(({ cache_control }) => cache_control).length
  marks += list(body.tools).filter(({ cache_control }) => cache_control).length
  if (marks > 4) report('more than four cache marks')
  if (open.length > 0) report('calls without results')
}

function geminiRules(body: Json, report: Report, issued: Issued): void {
  const contents = list(body.contents)
  if (contents[0]?.role !== 'user') report('the first content is not of the user')
  if (contents.at(-1)?.role === 'model') report('the last content is of the model')
  let open: string[] = []
  let before = ''
  for (const { role, parts: given } of contents) {
    const parts = list(given)
    if (parts.length === 0) report('an empty content')
    if (role === 'model' && before === 'model') report('two contents of the model in a row')
    before = text(role)
    const answers = parts.flatMap(({ functionResponse }) =>
      functionResponse ? [text(object(functionResponse).name)] : []
    )
    if (!isDeepStrictEqual(answers, open)) report('responses that do not match the calls before them')
    const calls = parts.filter(({ functionCall }) => functionCall)
    open = calls.map(({ functionCall }) => text(object(functionCall).name))
    for (const part of parts) {
      if ('text' in part && part.text === '' && !part.thoughtSignature) report('an empty text')
      const signature = part.thoughtSignature
      if (signature !== undefined && signature !== 'skip_thought_signature_validator')
        genuine('gemini', signature, undefined, report, issued)
      if (part.functionCall)
        signed(
          object(object(part.functionCall).args),
          'gemini',
          (expected) => signature === expected,
          report,
          issued,
          true
        )
    }
  }
  if (open.length > 0) report('calls without responses')
}

function responsesRules(body: Json, report: Report, issued: Issued): void {
  const items = list(body.input)
  const ids = new Set<string>()
  const open = new Set<string>()
  const answered = new Set<string>()
  let thoughts: unknown[] = []
  for (const [at, item] of items.entries()) {
    const type = text(item.type) || 'message'
    if (typeof item.id === 'string') {
      if (ids.has(item.id)) report(`an item twice: ${type}`)
      ids.add(item.id)
    }
    if (type === 'item_reference') report('a reference to an item that is not stored')
    if (type === 'reasoning') {
      thoughts.push(item.encrypted_content)
      genuine('openai responses', item.encrypted_content, undefined, report, issued)
      const next = items[at + 1]
      if (!next || next.role === 'user' || next.type === 'function_call_output')
        report('a thought that nothing follows')
    } else if (type === 'function_call') {
      if (open.has(text(item.call_id)) || answered.has(text(item.call_id))) report('a call id that is used twice')
      open.add(text(item.call_id))
      const args = parsed(item.arguments)
      if (!args) report('arguments that are not JSON')
      signed(args ?? {}, 'openai responses', (expected) => thoughts.includes(expected), report, issued)
    } else if (type === 'function_call_output') {
      if (!open.delete(text(item.call_id))) report('an output without its call')
      answered.add(text(item.call_id))
      if (item.output === '') report('an empty output')
    } else if (type === 'message') {
      const content = typeof item.content === 'string' ? [{ text: item.content }] : list(item.content)
      if (content.length === 0 || content.some((part) => 'text' in part && part.text === '')) report('an empty content')
      if (open.size > 0) report('a message between a call and its output')
      if (item.role === 'user') thoughts = []
    }
  }
  if (open.size > 0) report('calls without outputs')
  const last = items.at(-1)
  if (last?.role !== 'user' && last?.type !== 'function_call_output') report('nothing to answer at the end')
}

function chatRules(body: Json, report: Report, issued: Issued): void {
  const messages = list(body.messages).filter(({ role }) => role !== 'system')
  rolesAlternate(
    messages.filter(({ role }) => role !== 'tool'),
    ['user', 'assistant'],
    report,
    { afterTools: true }
  )
  let open: string[] = []
  const ids = new Set<string>()
  for (const message of messages) {
    if (message.role === 'tool') {
      const at = open.indexOf(text(message.tool_call_id))
      if (at < 0) report('a result without its call')
      else open.splice(at, 1)
      if (message.content === '') report('an empty content')
      continue
    }
    if (open.length > 0) report('calls without results')
    const calls = list(message.tool_calls)
    open = calls.map(({ id }) => text(id))
    for (const id of open) {
      if (ids.has(id)) report('a call id that is used twice')
      ids.add(id)
    }
    for (const call of calls) {
      const args = parsed(object(call.function).arguments)
      if (!args) report('arguments that are not JSON')
      // This format has no signatures, so none may be sent.
      signed(args ?? {}, 'openai-compatible chat', () => true, report, issued)
    }
    const isEmpty = message.content === '' || message.content === null || message.content === undefined
    if (isEmpty && calls.length === 0) report('an empty content')
  }
  if (open.length > 0) report('calls without results')
  if (messages.at(-1)?.role === 'assistant') report('the last message is of the model')
}

/** An answer after the results of calls follows another answer, as far as messages without results are concerned. */
function rolesAlternate(messages: Json[], roles: string[], report: Report, { afterTools = false } = {}): void {
  if (messages.length === 0) report('no message')
  for (const [at, { role, tool_calls }] of messages.entries()) {
    if (!roles.includes(text(role))) report(`a role that is not allowed: ${text(role)}`)
    const next = messages[at + 1]
    if (next && next.role === role && !(afterTools && role === 'assistant' && list(tool_calls).length > 0))
      report(`two messages of the ${text(role)} in a row`)
  }
  if (messages[0]?.role !== 'user') report('the first message is not of the user')
}

function parsed(value: unknown): Json | undefined {
  try {
    const read: unknown = JSON.parse(text(value))
    return typeof read === 'object' && read !== null && !Array.isArray(read) ? (read as Json) : undefined
  } catch {
    return undefined
  }
}

/** A call that this vendor made since the last switch comes with the signature of its step. */
function signed(
  args: Json,
  vendor: VendorName,
  isThere: (signature: string) => boolean,
  report: Report,
  issued: Issued,
  onFirstOnly = false
): void {
  const call = issued.calls.get(Number(args.n))
  if (!call || call.vendor !== vendor || call.era !== issued.era() || call.signature === undefined) return
  if (onFirstOnly && !call.isFirst) return
  if (!isThere(call.signature)) report('a call without the signature that came with it')
}

function genuine(vendor: VendorName, signature: unknown, thought: unknown, report: Report, issued: Issued): void {
  const known = issued.signatures.get(text(signature))
  if (!known) report('a signature that nobody has issued')
  else if (known.vendor !== vendor) report('a signature of another vendor')
  else if (thought !== undefined && known.text !== thought) report('a signed thought that was changed')
}
