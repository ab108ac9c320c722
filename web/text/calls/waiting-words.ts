import type { WaitingCall } from '../../../contract/rest.ts'
import { count } from '../format.ts'
import { WORKSPACE } from './call-summary.ts'

const WORDS: Record<string, string> = {
  execute_command: 'Run',
  write_file: 'Write',
  read_file: 'Read',
  list_files: 'List the files in'
}

/** Marks where there is more: further lines, and what a long gap would push out of sight. */
function oneLine(text: string): string {
  const [first = '', ...rest] = text.trimEnd().split(/\r?\n|\r/)
  return first.trimEnd().replaceAll(/\s{4,}/g, ' … ') + (rest.length > 0 ? ' …' : '')
}

/** One line for a list. Arguments may be shortened there, so it says nothing about sizes. Show it with VisibleText. */
export function waitingWords({ server, name, args }: WaitingCall): string {
  const about = [args.command, args.path].find((value) => typeof value === 'string')
  const line = typeof about === 'string' ? oneLine(about) : ''
  if (server !== WORKSPACE) return `${name} on ${server}${line === '' ? '' : `: ${line}`}`
  if (name === 'list_files' && line === '') return 'List the files'
  return `${WORDS[name] ?? name} ${line}`.trim()
}

/** For the bar above the composer. A preview has run in a fork already, so it is no call that needs approval. */
export function barWords({
  calls,
  previews,
  questions
}: {
  calls: number
  previews: number
  questions: number
}): string {
  const parts = [
    ...(calls > 0 ? [count(calls, 'tool call')] : []),
    ...(previews > 0 ? [count(previews, 'preview')] : []),
    ...(questions > 0 ? [count(questions, 'question')] : [])
  ]
  if (parts.length > 1) return `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)} wait for you`
  if (calls > 0) return `${count(calls, 'tool call needs', 'tool calls need')} your approval`
  if (previews > 0) return `${count(previews, 'preview needs', 'previews need')} your decision`
  return `${count(questions, 'question of an MCP server waits', 'questions of MCP servers wait')} for your answer`
}
