/** Reads a Jupyter notebook. Everything in it is hostile: only known shapes are taken, and HTML and scripts never are. */
export type NotebookOutput =
  | { kind: 'text' | 'error'; text: string }
  | { kind: 'markdown'; text: string }
  | { kind: 'image'; type: string; base64: string }
  | { kind: 'svg'; text: string }
  | { kind: 'note'; text: string }

interface NotebookCell {
  kind: 'markdown' | 'code' | 'text'
  source: string
  /** The number in brackets. */
  count: number | null
  outputs: NotebookOutput[]
}

export interface Notebook {
  language: string
  cells: NotebookCell[]
  isCut: boolean
}

const MAX_CELLS = 300
const MAX_OUTPUTS = 50
const MAX_TEXT = 100_000
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** Matches terminal colours. The preview leaves them out. */
const COLOURS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')

type Fields = Record<string, unknown>
const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Returns null if the text is not a notebook of version 4. */
export function parseNotebook(text: string): Notebook | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  const { cells, metadata } = fields(value)
  if (!Array.isArray(cells)) return null
  const info = fields(fields(metadata).language_info)
  const language = typeof info.name === 'string' ? info.name.slice(0, 40) : 'python'
  return { language, cells: cells.slice(0, MAX_CELLS).map(cellOf), isCut: cells.length > MAX_CELLS }
}

function cellOf(value: unknown): NotebookCell {
  const { cell_type, source, execution_count, outputs } = fields(value)
  const kind = cell_type === 'markdown' || cell_type === 'code' ? cell_type : 'text'
  const count = typeof execution_count === 'number' ? execution_count : null
  return { kind, source: joined(source), count, outputs: list(outputs).slice(0, MAX_OUTPUTS).map(outputOf) }
}

function outputOf(value: unknown): NotebookOutput {
  const { output_type, text, data, traceback, ename, evalue } = fields(value)
  if (output_type === 'stream') return { kind: 'text', text: joined(text).replace(COLOURS, '') }
  if (output_type === 'error') {
    const trace = joined(traceback, '\n').replace(COLOURS, '')
    return { kind: 'error', text: trace === '' ? `${String(ename)}: ${String(evalue)}` : trace }
  }
  return richOutput(fields(data))
}

function richOutput(data: Fields): NotebookOutput {
  for (const type of IMAGES) {
    const base64 = joined(data[type], '', Number.POSITIVE_INFINITY).replace(/\s+/g, '')
    if (base64 !== '' && /^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return { kind: 'image', type, base64 }
  }
  const svg = joined(data['image/svg+xml'], '', Number.POSITIVE_INFINITY)
  if (svg !== '') return { kind: 'svg', text: svg }
  const markdown = joined(data['text/markdown'])
  if (markdown !== '') return { kind: 'markdown', text: markdown }
  const plain = joined(data['text/plain'])
  if (plain !== '') return { kind: 'text', text: plain }
  const types = Object.keys(data).join(', ').slice(0, 200)
  return { kind: 'note', text: `This output can't be shown here${types === '' ? '' : ` (${types})`}.` }
}

/** Notebooks store a text as one string or as a list of lines. */
function joined(value: unknown, between = '', most = MAX_TEXT): string {
  const text = Array.isArray(value) ? value.filter((part) => typeof part === 'string').join(between) : value
  if (typeof text !== 'string') return ''
  return text.length > most ? `${text.slice(0, most)}…` : text
}
