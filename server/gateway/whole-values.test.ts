import fc from 'fast-check'
import { expect, it } from 'vitest'
import { whyConfirm, whyNotFill } from './execute/confirm-route.ts'
import type { GatewayServices } from './gateway-services.ts'
import { checkParams } from './params/check-params.ts'
import { fillParams } from './params/fill-params.ts'

const text = { type: 'string' }
const number = { type: 'number' }
const toolOf = (name: string, description: string, properties: Record<string, object>) => ({
  ...{ name, description, annotations: {}, hash: 'x' },
  inputSchema: { type: 'object', properties, required: Object.keys(properties) }
})
const WRITE = toolOf('write_file', 'Write a file.', { path: text, content: text })
const CREATE = toolOf('create_directory', 'Create a directory.', { path: text })
const ISSUE = toolOf('create_issue', 'Create an issue.', { title: text })
const PAY = toolOf('pay', 'Pay an amount.', { amount: number })
const READ = toolOf('read_file', 'Read a file.', { path: text })
const SUM = toolOf('get_sum', 'Get the sum of two numbers.', { a: number, b: number })
const GET = toolOf('get_issue', 'Get an issue of a repository.', { issue_number: number, owner: text, repo: text })
const ALL = [WRITE, CREATE, ISSUE, PAY, READ, SUM, GET]

const core = { index: { entry: () => undefined, tools: () => ALL } } as unknown as GatewayServices

/** The parameters of the call that runs; undefined if nothing does. */
function runs(tool: typeof READ, request: string, isRead: boolean, isNamed: boolean) {
  const { params, ...filled } = fillParams(tool, {}, request)
  if (checkParams(tool.inputSchema, params).length > 0) return undefined
  const filledBy = Object.fromEntries(Object.keys(params).map((name) => [name, 'rules' as const]))
  const found = { ...{ server: 'files', tool, request, isRead, params, problems: [], filledBy }, ...filled }
  const why = isNamed
    ? whyNotFill(found, undefined)
    : whyConfirm(core, { ...found, confidence: 0.9, isServerNamed: false })
  return why === undefined ? params : undefined
}
const named = (tool: typeof READ, request: string) => runs(tool, request, false, true)

it.each([
  [WRITE, 'write path=/tmp/w/q.txt content=hello big world'],
  [CREATE, 'create directory path=/tmp/w/my dir'],
  [CREATE, 'create directory path: /tmp/w/my directory'],
  [WRITE, "write path=/tmp/a content='it's'"],
  [WRITE, 'write path=/tmp/a content="hello" world'],
  [WRITE, 'write path=/tmp/a content="a world" world'],
  [WRITE, 'write path=/tmp/a content=(a b)'],
  [WRITE, 'write path=/tmp/a content=a\nb'],
  [WRITE, 'write path=/tmp/a content=a, b'],
  [WRITE, 'write path=/tmp/a content=5 €'],
  [WRITE, 'write path=/tmp/a content=done.'],
  [WRITE, 'write path=/tmp/a content=a"b c"'],
  [WRITE, 'write path=/tmp/a content=x content=y'],
  [WRITE, 'write path=/tmp/a content="x" ½'],
  [WRITE, 'write path=(content=a.txt and'],
  [WRITE, 'write path="a content=evil "'],
  [ISSUE, 'create issue title=Crash on start'],
  [ISSUE, 'create issue, $title=Crash'],
  [PAY, 'pay amount=5 million'],
  [PAY, 'pay amount=5 €'],
  [PAY, 'pay amount=99999999999999999999']
])('runs no write with a value whose end is not certain (%#)', (tool, request) => {
  expect(named(tool, request)).toBeUndefined()
})

it.each([
  [WRITE, 'write path=/tmp/a content="hello big world"', { path: '/tmp/a', content: 'hello big world' }],
  [WRITE, 'please write the file, path=/tmp/a, content=x', { path: '/tmp/a', content: 'x' }],
  [WRITE, 'write path=/tmp/a with the content "x y"', { path: '/tmp/a', content: 'x y' }],
  [WRITE, 'write path=/tmp/a,content=a,b;c', { path: '/tmp/a', content: 'a,b;c' }],
  [WRITE, 'write path=/tmp/a content=f(x)', { path: '/tmp/a', content: 'f(x)' }],
  [CREATE, 'create the directory path=C:\\Users\\me, please', { path: 'C:\\Users\\me' }],
  [PAY, 'pay amount=5', { amount: 5 }]
])('runs a write with values whose ends are certain (%#)', (tool, request, expected) => {
  expect(named(tool, request)).toEqual(expected)
})

const READS: [typeof READ, string][] = [
  ...[
    ...['C:\\Users\\me\\a.txt', 'prüfung/a.txt', '/tmp/w/a.txt~', '\\\\srv\\share\\a.txt', 'foo\\a.txt', '@a.txt'],
    ...['%USERPROFILE%\\a.txt', 'x|a.txt', 'a\\ b.txt', 'user@host:notes.txt', 'D:notes.txt', 'D:/x/notes.txt'],
    ...['$HOME/proj', `\${X}/tmp/a.txt`, '/tmp/proj\\sub', '/tmp/do.not.txt', '/tmp/w/my dir']
  ].map((path): [typeof READ, string] => [READ, `read the file ${path}`]),
  ...[
    ...['−3 and 5', '–3 and 5', 'minus 3 and 5', '-  3 and 5', '3½ and 5', '5² and 3', '√9 and 5', '10% and 5'],
    ...['½ and 5 and 6', '99999999999999999999 and 1', '10 % and 5', '>5 and 3', '1,234 and 5', '5 million and 3']
  ].map((numbers): [typeof READ, string] => [SUM, `get the sum of ${numbers}`]),
  [GET, 'get issue 42 in müller/repo'],
  [GET, 'get issue 1,234 in octo/repo'],
  [GET, 'get issue 4.2 in octo/repo']
]

it.each(READS)('reads nothing with a part of what the sentence names (%#)', (tool, request) => {
  const params = runs(tool, request, true, false)
  // A value that is the whole token is right.
  const isWhole = Object.values(params ?? {}).every((value) => request.split(' ').includes(String(value)))
  expect(params === undefined || isWhole, JSON.stringify(params)).toBe(true)
  if (tool !== READ) expect(params).toBeUndefined()
  const asNamed = runs(tool, request, true, true)
  expect(Object.values(asNamed ?? {}).every((value) => request.split(' ').includes(String(value)))).toBe(true)
})

it.each([
  [READ, 'read the file /tmp/w/a.txt.', { path: '/tmp/w/a.txt' }],
  [READ, 'read the file (docs/a.txt), please', { path: 'docs/a.txt' }],
  [READ, 'read the file "my notes.txt"', { path: 'my notes.txt' }],
  [SUM, 'get the sum of -3 and 5.5', { a: -3, b: 5.5 }],
  [GET, 'get issue #42 in octo/repo', { issue_number: 42, owner: 'octo', repo: 'repo' }]
])('reads with whole values (%#)', (tool, request, expected) => {
  expect(runs(tool, request, true, false)).toEqual(expected)
})

const PIECES = [
  ...['a.txt', '/tmp/x', 'b/c', '3', '42', '-1', '0.5', 'x', 'main', '\\', '%', '~', '$', '½', '−', '–', '²', '√', '€'],
  ...[
    '@',
    '|',
    ':',
    '=',
    ',',
    ';',
    '.',
    '(',
    ')',
    '[',
    ']',
    '"',
    "'",
    '“',
    '”',
    '`',
    '#',
    '<',
    '>',
    'ü',
    '{',
    '}',
    '*'
  ],
  ...['path=', 'content=', 'a=', 'b: ', 'title ', 'amount=', 'https://e.test/', 'not', '\n', '99999999999999999999']
]
const token = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 5 }).map((parts) => parts.join('')),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
  fc.constantFrom('and', 'to', 'the', 'file', 'with', 'of', 'please')
)
const PUNCTUATION = /^[\s()[\].,;:!?…"'“”‘’`«»]*$/

/** Whether the value is a part of a longer token: what is left of the tokens around it is more than punctuation. */
function isPart(value: string, request: string, name: string): boolean {
  for (let at = request.indexOf(value); at >= 0; at = request.indexOf(value, at + 1)) {
    const before = /\S*$/.exec(request.slice(0, at))?.[0] ?? ''
    const after = /^\S*/.exec(request.slice(at + value.length))?.[0] ?? ''
    const own = before.replace(new RegExp(`^[([,;]*(?:\\S*[,;])?${name}\\s*[=:]`, 'i'), '')
    const next = after.replace(/^[,;]\w+[=:].*$/s, '')
    if (PUNCTUATION.test(own.replace(/#$/, '')) && PUNCTUATION.test(next)) return false
  }
  return true
}

it('runs nothing with a part of a token, whatever the sentence is', () => {
  const starts = [
    'read the file ',
    'write path=',
    'get the sum of ',
    'create issue title=',
    'pay ',
    'create directory '
  ]
  const anyRequest = fc
    .tuple(fc.constantFrom(...starts), fc.array(token, { minLength: 1, maxLength: 6 }))
    .map(([start, tokens]) => start + tokens.join(' '))
  fc.assert(
    fc.property(fc.constantFrom(...ALL), anyRequest, fc.boolean(), fc.boolean(), (tool, request, isRead, isNamed) => {
      // The two parts of "owner/name" are one token.
      if (tool === GET) return
      const params = runs(tool, request, isRead, isNamed || !isRead)
      for (const [name, value] of Object.entries(params ?? {})) {
        const isSaid = value === '' || !isPart(String(value), request, name)
        expect(isSaid, `${tool.name} ${JSON.stringify(params)} of ${JSON.stringify(request)}`).toBe(true)
      }
    }),
    { numRuns: 3000 }
  )
}, 60_000)
