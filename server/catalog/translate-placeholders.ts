import { basename } from 'node:path'
import { isRecord } from '../lib/is-record.ts'
import { isPlaceholder } from './placeholders.ts'

export interface Translated {
  raw: unknown
  /** What another client would fill in, and nobody does here. */
  left: string[]
}

const ANY = /\$\{[^${}]{1,200}\}/g
/** Where ours are filled. */
const FILLED = new Set(['env', 'headers'])

/** Claude Code writes a bare name for a variable of the environment; in the files of the others that is no placeholder. */
export function translatePlaceholders(file: string, raw: unknown): Translated {
  const left = new Set<string>()
  if (!isRecord(raw)) return { raw, left: [] }
  const isClaudeCode = ['.mcp.json', '.claude.json'].includes(basename(file))
  const fill = (text: string) =>
    text.replace(ANY, (whole) => {
      const ours = isClaudeCode ? whole.replace(/^\$\{(?=[A-Za-z_][A-Za-z0-9_]*\}$)/, '$&env:') : whole
      if (isPlaceholder(ours)) return ours
      left.add(whole)
      return whole
    })
  const entries = Object.entries(raw).map(([key, value]) => {
    if (!FILLED.has(key) || !isRecord(value)) {
      for (const [found] of JSON.stringify(value ?? null).matchAll(ANY)) left.add(found)
      return [key, value]
    }
    const texts = Object.entries(value).map(([name, text]) => [name, typeof text === 'string' ? fill(text) : text])
    return [key, Object.fromEntries(texts)]
  })
  return { raw: Object.fromEntries(entries), left: [...left] }
}
