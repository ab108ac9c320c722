import { WORKSPACE } from './own-sources.ts'

/** One line that says what a call is about: its command, its path, or its arguments. It may contain anything that the model wrote. */
const MAX_CHARS = 300

export function callAbout(call: { server: string; name: string }, args: unknown): string {
  const { command, path } = fieldsOf(args)
  const own = call.server === WORKSPACE ? (call.name === 'execute_command' ? command : path) : undefined
  const text = typeof own === 'string' ? own : argumentsText(args)
  const line = text.replace(/\s+/g, ' ').trim()
  return (line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS)}…` : line).toWellFormed()
}

function argumentsText(args: unknown): string {
  const text = JSON.stringify(args) ?? ''
  return text === '{}' ? '' : text.slice(0, 2 * MAX_CHARS)
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
