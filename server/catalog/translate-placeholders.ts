import { isRecord } from '../lib/is-record.ts'
import { isPlaceholder } from './placeholders.ts'

export interface Translated {
  raw: unknown
  /** Placeholders of another client that have no meaning here. */
  left: string[]
}

/** Where ours are filled. */
const FILLED = new Set(['env', 'headers'])
/** Where another client would fill its own. */
const READ = new Set(['command', 'args', 'cwd', 'url', 'serverUrl'])
/** `$${` stands for `${` itself. */
const ANY = /(?<!\$)\$\{[^${}]{1,200}\}/g

/**
 * A bare name is a variable of the environment (Claude Code), `env:` is one for VS Code and Cursor as it is here, and what VS Code asks the
 * user for (`input:`) is a secret. Everything else has no counterpart.
 */
export function translatePlaceholders(raw: unknown): Translated {
  const left = new Set<string>()
  if (!isRecord(raw)) return { raw, left: [] }
  const fill = (text: string) =>
    text.replace(ANY, (whole) => {
      const ours = whole.replace(/^\$\{(?=[A-Za-z_]\w*\}$)/, '$&env:').replace(/^\$\{input:/, '${secret:')
      if (isPlaceholder(ours)) return ours
      left.add(whole)
      return whole
    })
  const entries = Object.entries(raw).map(([key, value]) => {
    if (FILLED.has(key) && isRecord(value)) {
      const texts = Object.entries(value).map(([name, text]) => [name, typeof text === 'string' ? fill(text) : text])
      return [key, Object.fromEntries(texts)]
    }
    if (READ.has(key)) for (const found of foreignIn(raw.command, value)) left.add(found)
    return [key, value]
  })
  return { raw: Object.fromEntries(entries), left: [...left] }
}

/** In a command line, an address or a folder. A shell's own variables are its business, and so is code that is given as an argument. */
export function foreignIn(command: unknown, value: unknown): string[] {
  const words = (Array.isArray(value) ? value : [value]).filter((word) => typeof word === 'string')
  const isShell = typeof command === 'string' && /(^|[/\\])(ba|da|z|k|fi|a)?sh$/.test(command)
  return words.flatMap((word) => {
    const found = [...word.matchAll(ANY)].map(([whole]) => whole)
    return found.filter((whole) => isKnown(whole) || (!isShell && !/[\s`]/.test(word)))
  })
}

/** Forms that only clients have. */
function isKnown(placeholder: string): boolean {
  return /^\$\{(input:|workspaceFolder|userHome\}|pathSeparator\}|config:|command:)/.test(placeholder)
}
