import { AppError } from '../../lib/errors.ts'
import { type ServerEntry, valuesOf } from '../server-entry.ts'

/** Any placeholder, ours or another client's; `$${` is an escaped `${`. */
export const ANY_PLACEHOLDER = /(?<!\$)\$\{[^${}]{1,200}\}/g
/** One inside another, such as `${A:-${B}}`: filling the inner one alone would leave the outer one as text. */
const NESTED = /(?<!\$)\$\{[^${}]{0,200}\$\{[^{}]{0,200}\}[^{}]{0,200}\}/g
/** In variables and headers, ours are filled first; what is left belongs to another client. */
const LEFT = /(?<!\$)\$\{(?!(?:secret|env):[A-Za-z_][A-Za-z0-9_.-]*\})[^${}]{1,200}\}/g

/** Throws if the entry has a placeholder that we don't fill: the server would take its text for the value. */
export function refuseForeignPlaceholders(entry: ServerEntry): void {
  const values = Object.values(valuesOf(entry))
  const inValues = values.flatMap((text) => [...nestedIn(text), ...[...text.matchAll(LEFT)].map(([whole]) => whole)])
  const elsewhere =
    entry.kind === 'local'
      ? foreignIn(entry.command, [entry.command, ...entry.args, ...(entry.cwd === undefined ? [] : [entry.cwd])])
      : foreignIn(undefined, entry.url)
  const found = [...new Set([...inValues, ...elsewhere])]
  if (found.length === 0) return
  throw new AppError('invalid', 'placeholder_unknown', `The server "${entry.name}" ${describeForeign(found)}.`, {
    details: { permanent: true }
  })
}

/** Without the full stop. */
export function describeForeign(found: string[]): string {
  return `has ${found.join(', ')}, which nothing fills in here: put the value itself into mcp.json, or \${env:NAME} or \${secret:NAME} under "env" or "headers" ($\${…} there stands for \${…} as it is)`
}

export function nestedIn(text: string): string[] {
  return [...text.matchAll(NESTED)].map(([whole]) => whole)
}

/**
 * Foreign placeholders in a command line, an address or a folder. Variables of a shell, and code that is passed as an argument,
 * don't count.
 */
export function foreignIn(command: unknown, value: unknown): string[] {
  const words = (Array.isArray(value) ? value : [value]).filter((word) => typeof word === 'string')
  return words.flatMap((word) => {
    const found = [...nestedIn(word), ...[...word.matchAll(ANY_PLACEHOLDER)].map(([whole]) => whole)]
    return found.filter((whole) => isOfClient(command, word, whole))
  })
}

/** Whether a client would fill this placeholder, not a shell or a program later. */
export function isOfClient(command: unknown, word: string, placeholder: string): boolean {
  const isShell = typeof command === 'string' && /(^|[/\\])(ba|da|z|k|fi|a)?sh$/.test(command)
  return isKnown(placeholder) || (!isShell && !/[\s`]/.test(word))
}

/** Forms that only clients use. */
function isKnown(placeholder: string): boolean {
  return /^\$\{(input:|workspaceFolder|userHome\}|pathSeparator\}|config:|command:)/.test(placeholder)
}
