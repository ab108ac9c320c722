import type {
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  SharedV4ProviderOptions
} from '@ai-sdk/provider'
import type { AssistantPart, ChatFile, ChatMessage, ModelTool, ProviderMeta, StepRequest, ToolAnswer } from '../port.ts'
import { NO_FILES, type ShownFiles } from './prompt-files.ts'
import { readArguments } from './read-arguments.ts'
import { isTagged } from './think-tags.ts'

type UserContent = Extract<LanguageModelV4Message, { role: 'user' }>['content']
type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type ToolContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content']

type ToolOutput = Extract<ToolContent[number], { type: 'tool-result' }>['output']
type UserMessage = Extract<ChatMessage, { role: 'user' }>

const LONGEST_TOOL_NAME = 64

/** Converts our conversation to the vendor packages' types; `meta` is sent back exactly as it came. */
export function toPrompt(
  request: Pick<StepRequest, 'system' | 'messages' | 'tools'>,
  shown: ShownFiles = NO_FILES
): {
  prompt: LanguageModelV4CallOptions['prompt']
  tools: LanguageModelV4FunctionTool[]
} {
  const prompt: LanguageModelV4Message[] = []
  if (request.system !== '') prompt.push({ role: 'system', content: request.system, providerOptions: CACHED })
  for (const message of request.messages) for (const next of toMessage(message, shown)) add(prompt, next)
  const last = prompt.at(-1)
  if (last && last.role !== 'assistant') last.providerOptions = CACHED
  return { prompt, tools: request.tools.map(toTool) }
}

/**
 * Claude caches a request up to these marks, here the tools with the system prompt and the whole conversation, so that the next step
 * pays little for what it repeats. The other providers cache by themselves and don't get the marks.
 */
const CACHED: SharedV4ProviderOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }

function toMessage(message: ChatMessage, shown: ShownFiles): LanguageModelV4Message[] {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: userContent(message, shown) }]
    case 'assistant': {
      // A model that thinks in tags expects its earlier answers without them.
      const content = message.parts.filter((part) => !isTagged(part)).map(toPart)
      return content.length === 0 ? [] : [{ role: 'assistant', content }]
    }
    case 'tool': {
      const content = message.answers.map((answer) => toResult(answer, shown))
      return content.length === 0 ? [] : [{ role: 'tool', content }, ...afterResults(message.answers, shown)]
    }
  }
}

/** A question that got no answer becomes part of the next one: many local models demand that user and model take turns. */
function add(prompt: LanguageModelV4Message[], next: LanguageModelV4Message): void {
  const last = prompt.at(-1)
  if (last?.role !== 'user' || next.role !== 'user') return void prompt.push(next)
  const [first, ...rest] = next.content
  const before = last.content.at(-1)
  // One text, because some servers accept no list of parts.
  const joined = before?.type === 'text' && first?.type === 'text' ? `${before.text}\n\n${first.text}` : undefined
  const content: UserContent =
    joined === undefined
      ? [...last.content, ...next.content]
      : [...last.content.slice(0, -1), { type: 'text', text: joined }, ...rest]
  prompt[prompt.length - 1] = { ...last, content }
}

/** Files come before the question about them, as the vendors advise. */
function userContent({ text, note = '', files = [] }: UserMessage, shown: ShownFiles): UserContent {
  const words = [text, note].filter((part) => part !== '').join('\n\n')
  const parts = files.map((file) => shown.part(file))
  if (words === '' && parts.length > 0) return parts
  // Vendors refuse an empty text. An imported message has none if it consisted of files.
  return [...parts, { type: 'text', text: words || '(no text)' }]
}

function toPart(part: AssistantPart): AssistantContent[number] {
  const attached = isProviderOptions(part.meta) ? { providerOptions: part.meta } : {}
  if (part.type !== 'tool-call') return { type: part.type, text: part.text, ...attached }
  // The tool's answer tells the model about arguments that can't be read; here only an object is allowed.
  const { value = {} } = part.invalid === undefined ? readArguments(part.args) : {}
  return { type: 'tool-call', toolCallId: part.callId, toolName: sendableName(part.name), input: value, ...attached }
}

function toResult(answer: ToolAnswer, shown: ShownFiles): ToolContent[number] {
  const value = answer.text === '' ? '(no output)' : answer.text
  return {
    type: 'tool-result',
    toolCallId: answer.callId,
    toolName: sendableName(answer.name),
    output: answer.isError ? { type: 'error-text', value } : resultOutput(value, answer.files ?? [], shown)
  }
}

/** The text is one part and comes first: for Gemini it is the answer, and files follow it. */
function resultOutput(value: string, files: ChatFile[], shown: ShownFiles): ToolOutput {
  const parts = files.map((file) => shown.part(file))
  const words = [value, ...parts.flatMap((part) => (part.type === 'text' ? part.text : []))].join('\n')
  const inside = shown.inResults ? parts.filter((part) => part.type === 'file') : []
  if (inside.length === 0) return { type: 'text', value: words }
  return { type: 'content', value: [{ type: 'text', text: words }, ...inside] }
}

/** For vendors whose tool messages are only text: the files follow in a message of their own. */
function afterResults(answers: ToolAnswer[], shown: ShownFiles): LanguageModelV4Message[] {
  if (shown.inResults) return []
  const content = answers.flatMap(({ name, isError, files = [] }): UserContent => {
    const parts = isError ? [] : files.map((file) => shown.part(file)).filter((part) => part.type === 'file')
    return parts.length === 0 ? [] : [{ type: 'text', text: `[From the result of ${sendableName(name)}:]` }, ...parts]
  })
  return content.length === 0 ? [] : [{ role: 'user', content }]
}

function toTool(tool: ModelTool): LanguageModelV4FunctionTool {
  return {
    type: 'function',
    name: tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema as JSONSchema7
  }
}

/** A name that the model made up may contain characters for which a vendor would refuse the whole conversation. */
function sendableName(name: string): string {
  return name.replace(/[^\w-]/g, '_').slice(0, LONGEST_TOOL_NAME) || 'unnamed'
}

function isProviderOptions(meta: ProviderMeta | undefined): meta is SharedV4ProviderOptions {
  return (
    meta !== undefined &&
    Object.values(meta).every((value) => typeof value === 'object' && value !== null && !Array.isArray(value))
  )
}
