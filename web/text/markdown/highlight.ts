/** Loaded when the first code block is shown. highlight.js escapes its output, which contains only spans with classes. */
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import dockerfile from 'highlight.js/lib/languages/dockerfile'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import kotlin from 'highlight.js/lib/languages/kotlin'
import markdown from 'highlight.js/lib/languages/markdown'
import php from 'highlight.js/lib/languages/php'
import powershell from 'highlight.js/lib/languages/powershell'
import python from 'highlight.js/lib/languages/python'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import shell from 'highlight.js/lib/languages/shell'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { reveal } from '../../../contract/hidden-characters.ts'
import type { ColourRun } from '../diff/styled-line.ts'

const LANGUAGES = {
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  markdown,
  php,
  powershell,
  python,
  ruby,
  rust,
  console: shell,
  sql,
  swift,
  typescript,
  xml,
  yaml
}
const MAX_CHARS = 50_000

for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language)
hljs.registerAliases(['vue', 'html', 'svg'], { languageName: 'xml' })
// Models write plain commands under this name, without a prompt.
hljs.registerAliases(['shell'], { languageName: 'bash' })

/** Returns HTML, or null if the language is unknown or the text is too long. */
export function highlighted(code: string, language: string): string | null {
  if (code.length > MAX_CHARS || !hljs.getLanguage(language)) return null
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true })
  // Hidden characters are in the text only, never in a tag.
  return reveal(value, 'columns')
    .map((part) => (part.hidden ? `<span class="hidden-char">${part.hidden}</span>` : part.text))
    .join('')
}

const ENTITIES: Record<string, number> = { '&amp;': 1, '&lt;': 1, '&gt;': 1, '&quot;': 1, '&#x27;': 1 }
const TOKEN = /<span class="([^"]*)">|<\/span>|\n|&(?:amp|lt|gt|quot|#x27);|[^<&\n]+|[<&]/g

/** The colours of each line; null if the language is unknown or the text is too long. */
export function highlightedLines(code: string, language: string): ColourRun[][] | null {
  if (code.length > MAX_CHARS || !hljs.getLanguage(language)) return null
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true })
  const lines: ColourRun[][] = [[]]
  const open: string[] = []
  for (const { 0: token, 1: className } of value.matchAll(TOKEN)) {
    if (className !== undefined) open.push(className)
    else if (token === '</span>') open.pop()
    else if (token === '\n') lines.push([])
    else addRun(lines.at(-1) ?? [], ENTITIES[token] ?? token.length, open.at(-1) ?? '')
  }
  return lines
}

function addRun(runs: ColourRun[], length: number, className: string): void {
  const last = runs.at(-1)
  if (last?.className === className) last.length += length
  else runs.push({ length, className })
}
