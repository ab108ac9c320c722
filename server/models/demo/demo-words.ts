import { plural } from '../../lib/plural.ts'
import type { AssistantPart, ToolAnswer } from '../port.ts'
import { readArguments } from '../step/read-arguments.ts'
import { isTool } from './demo-calls.ts'

type ToolCall = Extract<AssistantPart, { type: 'tool-call' }>

const LONGEST_QUOTE = 1_500

export const INTRODUCTION =
  "I'm the built-in demo model: a handful of rules, no AI. The tools, the approvals and the sandbox are real."

export const ABILITIES = [
  'I understand, one per line:',
  '- `list the files` or `list the files in FOLDER`',
  '- `write NAME: CONTENT` or `write CONTENT to NAME`',
  '- `read NAME`',
  '- `run COMMAND`',
  '- `use TOOL {"its": "arguments"}` for any other tool on offer',
  '',
  'For real conversations, set the key of a model provider and choose one of its models.'
].join('\n')

/** Announces what the model is about to request, before the user decides. */
export function announce(calls: ToolCall[]): string {
  if (calls.length === 0) return ''
  const list = calls.map((call) => `- ${describe(call)}`).join('\n')
  return calls.length === 1 ? `I'd like to ${describe(calls[0])}.` : `I'd like to do ${calls.length} things:\n${list}`
}

/** The result of a call, in the tool's or the user's own words. */
export function report(answer: ToolAnswer, call: ToolCall | undefined): string {
  const what = call === undefined ? `call ${answer.name}` : describe(call)
  if (!answer.isError)
    return answer.text.trim() === ''
      ? `I ${past(what)}; there was no output.`
      : `I ${past(what)}:\n${quote(answer.text)}`
  const rejected = /reject|declin|refus|denied|not allowed/i.test(answer.text)
  return rejected
    ? `I was not allowed to ${what}: ${oneLine(answer.text)}`
    : `I could not ${what}:\n${quote(answer.text)}`
}

const PAST: Record<string, string> = { run: 'ran', write: 'wrote', list: 'listed', call: 'called', do: 'did' }
function past(what: string): string {
  return what.replace(/^\w+/, (verb) => PAST[verb] ?? verb)
}

function describe(call: ToolCall | undefined): string {
  if (call === undefined) return 'do nothing'
  const { value = {} } = readArguments(call.args)
  const path = typeof value.path === 'string' ? value.path : 'the workspace'
  if (isTool(call.name, 'execute_command')) return `run ${code(String(value.command))}`
  if (isTool(call.name, 'write_file')) return `write ${code(path)}`
  if (isTool(call.name, 'read_file')) return `read ${code(path)}`
  if (isTool(call.name, 'list_files')) return `list the files in ${path === 'the workspace' ? path : code(path)}`
  return `call ${code(call.name)} with ${code(call.args)}`
}

function code(text: string): string {
  const line = oneLine(text)
  return line.includes('`') ? `\`\` ${line} \`\`` : `\`${line}\``
}

function oneLine(text: string): string {
  const line = text.replace(/(?<!\s)\s*\n\s*/g, ' ⏎ ').trim()
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

function quote(text: string): string {
  const left = text.length - LONGEST_QUOTE
  const shown = left > 0 ? text.slice(0, LONGEST_QUOTE) : text
  const longest = Math.max(2, ...[...shown.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  const note =
    left > 0 ? `\n(${plural(left, 'more character')} ${left === 1 ? 'is' : 'are'} in the tool's own output.)` : ''
  return `${fence}\n${shown.trimEnd()}\n${fence}${note}`
}
