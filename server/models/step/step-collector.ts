import { randomUUID } from 'node:crypto'
import type { LanguageModelV4StreamPart, LanguageModelV4ToolCall } from '@ai-sdk/provider'
import type { AssistantPart, ProviderMeta, StepEvent, StepRequest } from '../port.ts'
import { readArguments } from './read-arguments.ts'
import { roughTokens } from './rough-tokens.ts'

type Done = Extract<StepEvent, { type: 'done' }>
type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>
type TextBlock = Extract<AssistantPart, { type: 'text' | 'reasoning' }>

/** Call ids that the page and the log can use; others are replaced. */
const USABLE_ID = /^[\w.:-]{1,128}$/

/** Assembles one try's stream: it emits deltas as they come, and the parts keep the model's order, bytes and attachments. */
export class StepCollector {
  readonly #request: Pick<StepRequest, 'system' | 'messages'>
  readonly #parts: AssistantPart[] = []
  readonly #open = new Map<string, TextBlock>()
  readonly #takenIds: Set<string>
  #finish: Finish | undefined

  constructor(request: Pick<StepRequest, 'system' | 'messages'>) {
    this.#request = request
    this.#takenIds = new Set(
      request.messages
        .flatMap((message) => (message.role === 'assistant' ? message.parts : []))
        .flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []))
    )
  }

  accept(part: LanguageModelV4StreamPart): StepEvent | undefined {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#start(part.type === 'text-start' ? 'text' : 'reasoning', part.id, part.providerMetadata)
        return undefined
      case 'text-delta':
      case 'reasoning-delta':
        return this.#grow(part.type === 'text-delta' ? 'text' : 'reasoning', part)
      case 'text-end':
      case 'reasoning-end':
        attach(this.#open.get(`${part.type === 'text-end' ? 'text' : 'reasoning'} ${part.id}`), part.providerMetadata)
        return undefined
      case 'tool-call':
        if (part.providerExecuted !== true) this.#call(part)
        return undefined
      case 'finish':
        this.#finish = part
        return undefined
      default:
        return undefined
    }
  }

  /** Returns undefined if the stream ended before the model did. */
  result(): Done | undefined {
    const raw = this.#finish?.finishReason
    if (raw === undefined || raw.unified === 'interrupted') return undefined
    const refused = raw.unified === 'content-filter'
    const kept = this.#parts.filter((part) =>
      part.type === 'tool-call' ? !refused : part.text !== '' || part.meta !== undefined
    )
    const parts = raw.unified === 'length' ? kept.map(markCutOff) : kept
    return { type: 'done', parts, finish: this.#finishOf(raw.unified, parts), usage: this.#usage(parts) }
  }

  /** The vendor's own word for why it stopped. */
  get stopReason(): string | undefined {
    return this.#finish?.finishReason.raw
  }

  #start(type: TextBlock['type'], id: string, meta: ProviderMeta | undefined): TextBlock {
    const block: TextBlock = { type, text: '' }
    attach(block, meta)
    this.#parts.push(block)
    this.#open.set(`${type} ${id}`, block)
    return block
  }

  #grow(
    type: TextBlock['type'],
    { id, delta, providerMetadata }: { id: string; delta: string; providerMetadata?: ProviderMeta }
  ): StepEvent | undefined {
    const block = this.#open.get(`${type} ${id}`) ?? this.#start(type, id, undefined)
    block.text += delta
    attach(block, providerMetadata)
    return delta === '' ? undefined : { type: `${type}-delta`, text: delta }
  }

  #call({ toolCallId, toolName, input, providerMetadata }: LanguageModelV4ToolCall): void {
    // Some servers number the calls of every step from 0, but an approval must never apply to two calls.
    const callId = USABLE_ID.test(toolCallId) && !this.#takenIds.has(toolCallId) ? toolCallId : `call_${randomUUID()}`
    this.#takenIds.add(callId)
    const args = input.trim() === '' ? '{}' : input
    const { invalid } = readArguments(args)
    this.#parts.push({
      type: 'tool-call',
      callId,
      name: toolName,
      args,
      ...(invalid !== undefined && { invalid }),
      ...(providerMetadata !== undefined && { meta: providerMetadata })
    })
  }

  #finishOf(unified: Finish['finishReason']['unified'], parts: AssistantPart[]): Done['finish'] {
    if (unified === 'content-filter') return 'refusal'
    if (unified === 'length') return 'length'
    if (parts.some((part) => part.type === 'tool-call')) return 'tool-calls'
    return unified === 'stop' ? 'stop' : 'other'
  }

  /** Estimates the usage if the server does not report it, so that spending limits still work. */
  #usage(parts: AssistantPart[]): Done['usage'] {
    const told = this.#finish?.usage
    const { cacheRead: cachedTokens, cacheWrite: writtenTokens } = told?.inputTokens ?? {}
    return {
      ...(cachedTokens ? { cachedTokens } : {}),
      ...(writtenTokens ? { writtenTokens } : {}),
      inputTokens:
        told?.inputTokens.total ??
        roughTokens(this.#request.system) + roughTokens(JSON.stringify(this.#request.messages)),
      outputTokens: told?.outputTokens.total ?? roughTokens(JSON.stringify(parts))
    }
  }
}

/** Later values replace earlier ones: a signature follows the thought that it signs. */
function attach(block: TextBlock | undefined, meta: ProviderMeta | undefined): void {
  if (block !== undefined && meta !== undefined) block.meta = { ...block.meta, ...meta }
}

function markCutOff(part: AssistantPart): AssistantPart {
  if (part.type !== 'tool-call' || part.invalid === undefined) return part
  return { ...part, invalid: 'The answer reached its length limit in the middle of this call.' }
}
