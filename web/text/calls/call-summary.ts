import type { CommandEnding } from '../../../contract/events.ts'
import { isProgram } from '../../../contract/programs.ts'
import type { CallEntry } from '../../../contract/transcript.ts'
import { bytes, count } from '../format.ts'
import { type FileEdit, fileEdits } from './file-edits.ts'

/** The sandbox's own server. Its tools are known, and so is what they can reach. */
export const WORKSPACE = 'workspace'

const MAX_NAMED = 4
const MAX_VALUE_CHARS = 50

const text = (value: unknown, fallback = '') => (typeof value === 'string' ? value : fallback)

/** A command's result ends with a line that says how it ended. */
export const isCommand = ({ server, name }: CallEntry) => server === WORKSPACE && name === 'execute_command'

/** The arguments that ran or will run. */
export function effectiveArgs(call: CallEntry): Record<string, unknown> {
  return call.decision?.editedArgs ?? call.args
}

/** One line that says what a call does. It may contain anything that the model wrote: show it with VisibleText. */
export function callSummary(call: CallEntry): string {
  const args = effectiveArgs(call)
  if (isProgram(call) && args.code === undefined) return 'Read on in what the last program returned'
  if (isProgram(call)) return `Run a program of ${count(text(args.code).split('\n').length, 'line')}`
  if (call.server !== WORKSPACE) return plainSummary(call.name, args)
  switch (call.name) {
    case 'write_file': {
      const [size, path] = [bytes(writtenBytes(args)), text(args.path, '?')]
      return args.append === true ? `Add ${size} to the end of ${path}` : `Write ${size} to ${path}`
    }
    case 'read_file':
      return `Read ${text(args.path, '?')}`
    case 'list_files':
      return `List the files in ${text(args.path, 'the workspace')}`
    case 'execute_command':
      return `Run ${firstLine(text(args.command))}`
    default:
      return plainSummary(call.name, args)
  }
}

/** The path and content that a call of the sandbox's `write_file` writes; null for other calls, and for content that is not text. */
export function writtenText(call: CallEntry): { path: string; content: string; append: boolean } | null {
  const { path, content, append = false, encoding = 'utf8' } = effectiveArgs(call)
  if (call.server !== WORKSPACE || call.name !== 'write_file' || encoding !== 'utf8') return null
  if (typeof path !== 'string' || typeof content !== 'string' || typeof append !== 'boolean') return null
  return { path, content, append }
}

function writtenBytes({ content, encoding }: Record<string, unknown>): number {
  if (encoding !== 'base64') return new TextEncoder().encode(text(content)).length
  return Math.floor((text(content).replace(/[\s=]+/g, '').length * 3) / 4)
}

/** The arguments in a sentence: `edit_file: src/app.ts, 3 edits` or `search: query “x”, limit 3`. */
export function plainSummary(name: string, args: Record<string, unknown>): string {
  const change = fileEdits(args)
  const words = change ? editWords(change.edits) : argumentWords(args)
  return firstLine(words === '' ? name : `${name}: ${words}`)
}

function editWords(edits: readonly FileEdit[]): string {
  const paths = [...new Set(edits.map(({ path }) => path).filter((path) => path !== undefined))]
  const [only] = edits
  const where = paths.length > 1 ? count(paths.length, 'file') : paths[0]
  const isWhole = edits.length === 1 && only?.before === null
  const what = isWhole ? bytes(new TextEncoder().encode(only.after).length) : count(edits.length, 'edit')
  const isFiles = edits.every(({ before }) => before === null) && edits.length > 1
  return [where, ...(isFiles && paths.length > 1 ? [] : [what])].filter(Boolean).join(', ')
}

function argumentWords(args: Record<string, unknown>): string {
  const entries = Object.entries(args)
  const shown = entries.slice(0, MAX_NAMED).map(([name, value]) => `${name}${valueWords(value)}`)
  const left = entries.length - shown.length
  return [...shown, ...(left > 0 ? [`${left} more`] : [])].join(', ')
}

function valueWords(value: unknown): string {
  if (typeof value === 'string') return ` “${firstLine(value, MAX_VALUE_CHARS)}”`
  if (Array.isArray(value)) return ` (${count(value.length, 'item')})`
  if (typeof value === 'object' && value !== null) return ` (${count(Object.keys(value).length, 'field')})`
  return ` ${String(value)}`
}

function firstLine(value: string, maxChars = 160): string {
  const line = value.split('\n', 1)[0] ?? ''
  const isCut = line.length < value.length || line.length > maxChars
  return isCut
    ? `${line
        .slice(0, maxChars)
        .replace(/[\ud800-\udbff]$/, '')
        .trimEnd()}…`
    : line
}

export interface Ending {
  text: string
  isGood: boolean
  ms: number
}

/** The last line that the sandbox's server writes under a command's output, for the model. */
const ENDING = /\n?\[(exit code -?\d+|killed by \w+|killed: [^\]\n]*), \d+ ms\]$/

/** Where the result says how the command ended, the output is shown without the line for the model. */
export function splitEnding(text: string, known?: CommandEnding): { output: string; ending: Ending | null } {
  return known ? { output: text.replace(ENDING, ''), ending: endingOf(known) } : { output: text, ending: null }
}

function endingOf({ exitCode, signal, timedOut, durationMs: ms }: CommandEnding): Ending {
  if (timedOut) return { text: 'killed at its time limit', isGood: false, ms }
  return { text: signal === null ? `exit code ${exitCode}` : `killed by ${signal}`, isGood: exitCode === 0, ms }
}

/** A path of the model as it appears in the workspace's listing; null if it can't be there. */
export function workspacePath(path: unknown): string | null {
  if (typeof path !== 'string') return null
  const parts: string[] = []
  for (const part of path.replace(/^\/workspace(?=\/|$)/, '').split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return parts.length === 0 ? null : parts.join('/')
}

export interface StreamText {
  stream: 'stdout' | 'stderr'
  text: string
}

/** A command's output as it came. `order` says how the streams took turns; the text has stdout first, then stderr under a heading. */
export function inOrder(output: string, order: readonly number[] | undefined): StreamText[] {
  const whole: StreamText[] = [{ stream: 'stdout', text: output }]
  if (!order) return whole
  const sum = (isOdd: number) => order.reduce((all, chars, at) => all + (at % 2 === isOdd ? chars : 0), 0)
  const stdout = output.slice(0, sum(0))
  const heading = `${stdout === '' || stdout.endsWith('\n') ? '' : '\n'}[stderr]\n`
  const rest = output.slice(stdout.length + heading.length)
  // The line that says how the command ended took the last line break with it.
  const stderr = sum(1) === rest.length + 1 ? `${rest}\n` : rest
  if (!output.startsWith(heading, stdout.length) || stderr.length !== sum(1)) return whole
  const at = { stdout: 0, stderr: 0 }
  return order.flatMap((chars, index) => {
    const stream = index % 2 === 0 ? 'stdout' : 'stderr'
    const text = (stream === 'stdout' ? stdout : stderr).slice(at[stream], at[stream] + chars)
    at[stream] += chars
    return text === '' ? [] : [{ stream, text }]
  })
}
