/**
 * Finds changes of files in the arguments of a tool that the page does not know. Servers name such arguments in a few ways. This is
 * only a way to show them: everything else in the arguments is listed too, and the exact arguments can always be seen.
 */
export interface FileEdit {
  /** Undefined if the arguments name no file. */
  path: string | undefined
  /** Null if this is the new content of the whole file. */
  before: string | null
  after: string
  /** Where the text is inserted, if the arguments say so. */
  line?: number | undefined
}

export interface FileEdits {
  edits: FileEdit[]
  /** The arguments that `edits` does not show. */
  rest: Record<string, unknown>
}

const PATHS = [
  ...['path', 'file_path', 'filePath', 'filepath', 'file', 'filename', 'fileName', 'target_file', 'relative_path'],
  ...['absolute_path', 'uri', 'notebook_path']
]
const CONTENTS = [
  ...['content', 'contents', 'file_text', 'fileText', 'file_content', 'fileContent', 'new_content', 'newContent'],
  'new_source'
]
const PAIRS: [before: string, after: string][] = [
  ['oldText', 'newText'],
  ['old_text', 'new_text'],
  ['old_string', 'new_string'],
  ['oldString', 'newString'],
  ['old_str', 'new_str'],
  ['oldStr', 'newStr'],
  ['old_content', 'new_content']
]
/** Names that mean an edit only next to the name of a file. */
const VAGUE_PAIRS: [before: string, after: string][] = [
  ['old', 'new'],
  ['search', 'replace'],
  ['find', 'replace']
]
const INSERTS = ['insert_text', 'insertText', 'new_str', 'text']
const LINES = ['insert_line', 'insertLine']
const LISTS = ['edits', 'changes', 'replacements', 'files', 'operations']
/** Each is drawn on its own, so more of them are shown as plain arguments. */
const MAX_EDITS = 50

type Values = Record<string, unknown>

/** Undefined if the arguments don't look like a change of files. */
export function fileEdits(args: Values): FileEdits | undefined {
  const path = textOf(args, PATHS)
  const own = editOf(args, path?.value)
  if (own) return { edits: [own.edit], rest: without(args, [...own.used, ...(path ? [path.name] : [])]) }
  for (const name of LISTS) {
    const found = listedEdits(args[name], path?.value)
    if (!found) continue
    const rest = without(args, [name, ...(path ? [path.name] : [])])
    return { edits: found.edits, rest: found.rest.length === 0 ? rest : { ...rest, [name]: found.rest } }
  }
  return undefined
}

function listedEdits(list: unknown, path: string | undefined): { edits: FileEdit[]; rest: Values[] } | undefined {
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_EDITS) return undefined
  const edits: FileEdit[] = []
  const rest: Values[] = []
  for (const item of list) {
    if (typeof item !== 'object' || item === null || Array.isArray(item)) return undefined
    const own = textOf(item, PATHS)
    const found = editOf(item, own?.value ?? path)
    if (!found) return undefined
    edits.push(found.edit)
    rest.push(without(item, [...found.used, ...(own ? [own.name] : [])]))
  }
  // Only if something is left in one of them; then all stay, so that their order says what belongs to what.
  return { edits, rest: rest.every((item) => Object.keys(item).length === 0) ? [] : rest }
}

function editOf(values: Values, path: string | undefined): { edit: FileEdit; used: string[] } | undefined {
  for (const [before, after] of path === undefined ? PAIRS : [...PAIRS, ...VAGUE_PAIRS]) {
    const [old, now] = [ownText(values, before), ownText(values, after)]
    if (old !== undefined && now !== undefined)
      return { edit: { path, before: old, after: now }, used: [before, after] }
  }
  if (path === undefined) return undefined
  const line = LINES.find((name) => Number.isSafeInteger(own(values, name)))
  const inserted = line === undefined ? undefined : textOf(values, INSERTS)
  if (line !== undefined && inserted) {
    const edit = { path, before: '', after: inserted.value, line: Number(values[line]) }
    return { edit, used: [line, inserted.name] }
  }
  const content = textOf(values, CONTENTS)
  return content && { edit: { path, before: null, after: content.value }, used: [content.name] }
}

function textOf(values: Values, names: readonly string[]): { name: string; value: string } | undefined {
  for (const name of names) {
    const value = ownText(values, name)
    if (value !== undefined) return { name, value }
  }
  return undefined
}

const own = (values: Values, name: string) => (Object.hasOwn(values, name) ? values[name] : undefined)

function ownText(values: Values, name: string): string | undefined {
  const value = own(values, name)
  return typeof value === 'string' ? value : undefined
}

function without(values: Values, names: readonly string[]): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)))
}
