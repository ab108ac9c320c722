/** A sentence of the user as the demo model understands it. */
export type DemoRequest =
  | { kind: 'list'; path?: string }
  | { kind: 'read'; path: string }
  | { kind: 'write'; path: string; content: string }
  | { kind: 'run'; command: string }
  | { kind: 'use'; tool: string; args: string }

export interface DemoPlan {
  /** One group per model step; the requests of a group are made at once. */
  groups: DemoRequest[][]
  unknown: string[]
}

const POLITE = /^\s*(?:please|now|can you|could you|would you)[\s,]+/i
const THEN = /(?:,(?: and)?| and) then /i
const NAME = `("[^"]+"|'[^']+'|\`[^\`]+\`|[^\\s:"'\`][^\\s:]*)`
const A_FILE = '(?:(?:a|an|the)\\s+)?(?:(?:new|empty)\\s+)*(?:file\\s+)?(?:(?:called|named)\\s+)?'

/** Maximum number of steps in one line. The text after them belongs to the last step. */
const MAX_STEPS = 20

type Rule = [pattern: RegExp, read: (groups: string[]) => DemoRequest]

const RULES: Rule[] = [
  [/^(?:run|execute)\s([\s\S]+)$/i, ([command = '']) => ({ kind: 'run', command: unquote(command, '`') })],
  [/^(?:use|call)\s+(\S+)(?:\s+([\s\S]+))?$/i, ([tool = '', args = '{}']) => ({ kind: 'use', tool, args })],
  [
    /^(?:list|show)(?:\s+me)?(?:\s+all)?(?:\s+(?:the|my))?\s+(?:files|folder|directory)(?:\s+(?:in|of|under)\s+(\S.*?))?[.?]?$/i,
    ([path]) => list(path)
  ],
  [/^(?:what|which)\s+files\s+are\s+(?:there|here)(?:\s+in\s+(\S.*?))?[.?]?$/i, ([path]) => list(path)],
  [/^(?:ls|list)(?:\s+(\S+?))?[.?]?$/i, ([path]) => list(path)],
  [
    new RegExp(`^(?:write|save|create|make)\\s+${A_FILE}${NAME}\\s*:[ \\t]?([\\s\\S]*)$`, 'i'),
    ([path = '', content = '']) => write(path, content)
  ],
  [
    new RegExp(
      `^(?:create|make|write)\\s+${A_FILE}${NAME}\\s+(?:with|containing|saying|that\\s+says)\\s+(?:the\\s+)?(?:(?:content|text)s?:?\\s+)?([\\s\\S]+)$`,
      'i'
    ),
    ([path = '', content = '']) => write(path, unquote(content, '"\'`'))
  ],
  [
    new RegExp(`^(?:write|save|put)\\s+(?=\\S)([\\s\\S]*\\S)\\s+(?:in)?to\\s+${A_FILE}${NAME}$`, 'i'),
    ([content = '', path = '']) => write(path, unquote(content, '"\'`'))
  ],
  [
    new RegExp(
      `^(?:create|make)\\s+(?:(?:a|an|the)\\s+)?(?:(?:new|empty)\\s+)*file\\s+(?:(?:called|named)\\s+)?${NAME}$`,
      'i'
    ),
    ([path = '']) => write(path, '')
  ],
  [
    /^(?:read|show|open|print|cat|what\s+is\s+in|what's\s+in)(?:\s+me)?(?:\s+the)?(?:\s+file)?\s+(\S.*?)\??$/i,
    ([path = '']) => ({ kind: 'read', path: unquote(path, '"\'`') })
  ]
]

/**
 * Each line is a request of the same step; ", then" puts the rest into a later step. A line that is not a request continues the
 * command or the content before it, and a command keeps every character after `run `.
 */
export function readPlan(text: string): DemoPlan {
  const plan: DemoPlan = { groups: [], unknown: [] }
  let last: DemoRequest | undefined
  for (const line of text.split(/\r?\n/)) {
    const requests = readLine(line)
    if (requests.length > 0) {
      requests.forEach((request, step) => {
        plan.groups[step] ??= []
        plan.groups[step].push(request)
      })
      last = requests.at(-1)
    } else if (last?.kind === 'run') last.command += `\n${line}`
    else if (last?.kind === 'write') last.content += last.content === '' ? line : `\n${line}`
    else if (line.trim() !== '') plan.unknown.push(line.trim())
  }
  return plan
}

function readLine(line: string, stepsLeft = MAX_STEPS): DemoRequest[] {
  const text = line.replace(POLITE, '').trimStart()
  const whole = readRequest(text)
  if (whole?.kind === 'run' || whole?.kind === 'use') return [whole]
  const split = stepsLeft > 0 ? text.search(THEN) : -1
  const first = split < 0 ? undefined : readRequest(text.slice(0, split))
  const rest = first === undefined ? [] : readLine(text.slice(split).replace(THEN, ''), stepsLeft - 1)
  if (first !== undefined && rest.length > 0) return [first, ...rest]
  return whole === undefined ? [] : [whole]
}

function readRequest(text: string): DemoRequest | undefined {
  for (const [pattern, read] of RULES) {
    const found = pattern.exec(text)
    if (found !== null) return read(found.slice(1))
  }
  return undefined
}

function list(path: string | undefined): DemoRequest {
  const named = path === undefined ? undefined : unquote(path, '"\'`')
  return named === undefined || /^(?:here|the workspace|\/workspace\/?)$/i.test(named)
    ? { kind: 'list' }
    : { kind: 'list', path: named }
}

function write(path: string, content: string): DemoRequest {
  return { kind: 'write', path: unquote(path, '"\'`'), content }
}

function unquote(text: string, quotes: string): string {
  const mark = text[0] ?? ''
  return text.length > 1 && quotes.includes(mark) && text.at(-1) === mark ? text.slice(1, -1) : text
}
