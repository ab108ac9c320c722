/** File endings of the languages that the page can colour. The first ending of a language is the one that new files get. */
const ENDINGS: Record<string, string[]> = {
  bash: ['sh', 'bash', 'zsh'],
  c: ['c', 'h', 'cc', 'cpp', 'hpp'],
  css: ['css'],
  diff: ['diff', 'patch'],
  dockerfile: ['Dockerfile'],
  go: ['go'],
  ini: ['ini', 'toml', 'cfg', 'env'],
  java: ['java'],
  javascript: ['js', 'mjs', 'cjs', 'jsx'],
  json: ['json', 'jsonc'],
  markdown: ['md', 'markdown'],
  python: ['py'],
  rust: ['rs'],
  sql: ['sql'],
  typescript: ['ts', 'tsx', 'mts', 'cts'],
  xml: ['xml', 'html', 'htm', 'svg', 'vue'],
  yaml: ['yaml', 'yml']
}
/** Other names of languages in code blocks, with the ending of their files. */
const OTHER_ENDINGS: Record<string, string> = {
  shell: 'sh',
  console: 'sh',
  'c++': 'cpp',
  csharp: 'cs',
  'c#': 'cs',
  golang: 'go',
  javascript: 'js',
  kotlin: 'kt',
  latex: 'tex',
  mermaid: 'mmd',
  perl: 'pl',
  php: 'php',
  powershell: 'ps1',
  ruby: 'rb',
  swift: 'swift',
  text: 'txt'
}

/** The language of a file by its name, or an empty text. */
export function languageOf(path: string): string {
  const name = path.split(/[/\\]/).at(-1) ?? ''
  const ending = name.slice(name.lastIndexOf('.') + 1)
  const isEnding = (each: string) => each.toLowerCase() === ending.toLowerCase()
  return Object.keys(ENDINGS).find((language) => ENDINGS[language]?.some(isEnding)) ?? ''
}

/** A name for a code block that is saved as a file. The language is hostile text. */
export function fileNameFor(language: string): string {
  const known = language.toLowerCase()
  if (known === 'dockerfile' || known === 'makefile') return language
  const ending = ownEntry(ENDINGS, known)?.[0] ?? ownEntry(OTHER_ENDINGS, known) ?? known
  return `code.${/^[a-z0-9]{1,10}$/.test(ending) ? ending : 'txt'}`
}

function ownEntry<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
