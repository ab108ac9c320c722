import type { CommandEnding } from '../../../contract/events.ts'
import type { CallEntry } from '../../../contract/transcript.ts'
import { bytes } from '../format.ts'

/** The sandbox's own server. Its tools are known, and so is what they can reach. */
export const WORKSPACE = 'workspace'

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

function writtenBytes({ content, encoding }: Record<string, unknown>): number {
  if (encoding !== 'base64') return new TextEncoder().encode(text(content)).length
  return Math.floor((text(content).replace(/[\s=]+/g, '').length * 3) / 4)
}

function plainSummary(name: string, args: Record<string, unknown>): string {
  const names = Object.keys(args)
  return names.length === 0 ? `Call ${name}` : firstLine(`Call ${name} with ${names.join(', ')}`)
}

function firstLine(value: string): string {
  const line = value.split('\n', 1)[0] ?? ''
  const isCut = line.length < value.length || line.length > 160
  return isCut ? `${line.slice(0, 160).trimEnd()}…` : line
}

export interface Ending {
  text: string
  isGood: boolean
  ms: number
}

/** The last line that the sandbox's server writes under a command's output, for the model. */
const ENDING = /\n?\[(exit code (-?\d+)|killed by \w+|killed: [^\]\n]*), (\d+) ms\]$/

/** Conversations of earlier versions have no `known`; there the last line says how the command ended. */
export function splitEnding(text: string, known?: CommandEnding): { output: string; ending: Ending | null } {
  const match = ENDING.exec(text)
  const output = match ? text.slice(0, match.index) : text
  if (known) return { output, ending: endingOf(known) }
  const ending = match && { text: match[1] ?? '', isGood: match[2] === '0', ms: Number(match[3]) }
  return { output, ending }
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
