/**
 * The thread in which a program runs. Owns the realm: a context with our API and nothing else. What runs here is hostile, so the
 * other thread believes none of its messages.
 */
import { constants, createContext, Script } from 'node:vm'
import { type MessagePort, parentPort } from 'node:worker_threads'
import { CODE_LIMITS } from './code-protocol.ts'
import { type Prelude, prelude } from './prelude.ts'
import type { Send } from './prelude-options.ts'
import { readProgram } from './read-program.ts'

export interface RunMessage {
  type: 'run'
  code: string
  seed: number
  now: number
}

export interface AnswerMessage {
  type: 'answer'
  n: number
  at: number
  ok: boolean
  code: string
  text: string
}

export interface ThreadOutput {
  type: string
  n: number
  kind: string
  server: string
  tool: string
  text: string
  line: number
}

export function runRealmThread(): void {
  const port = parentPort
  if (port === null) return
  // Whatever the program leaves unhandled is its own business. Looking at it could run its code outside the realm.
  const count = { unhandled: 0 }
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.removeAllListeners(event)
    process.on(event, () => void (event === 'unhandledRejection' && count.unhandled++))
  }
  process.on('rejectionHandled', () => void count.unhandled--)
  // The first use of the compiler and of a context takes longer than a whole program.
  readProgram('const warm: number = 1\nwarm')
  let realm: Prelude | undefined
  port.on('message', (message: RunMessage | AnswerMessage) => {
    if (message.type === 'run') realm ??= startProgram(port, message)
    else if (realm) deliver(port, realm, message)
    if (realm) setImmediate(reportEnd, port, realm, count)
  })
  post(port, 'ready', 0, '', '', '', '', 0)
}

function startProgram(port: MessagePort, { code, seed, now }: RunMessage): Prelude {
  const context = createContext(constants.DONT_CONTEXTIFY, { codeGeneration: { strings: false, wasm: false } })
  const send: Send = (type, n, kind, server, tool, text, line) => {
    const isJson = type === 'call' || type === 'done'
    if (!isJson || !isTooDeep(text)) post(port, type, n, kind, server, tool, text, line)
    else if (type === 'call') return `Arguments have at most ${CODE_LIMITS.levels} levels.`
    else {
      const note = `[The value has more than ${CODE_LIMITS.levels} levels: it is returned as text.]`
      post(port, 'log', 0, '', '', '', note, 0)
      post(port, type, n, kind, server, tool, JSON.stringify(text), line)
    }
    return undefined
  }
  const realm: Prelude = new Script(`(${prelude})`, { filename: 'realm' }).runInContext(context)({
    ...{ send, seed, now, lines: code.split('\n').length },
    limits: CODE_LIMITS
  })
  try {
    const program = readProgram(code)
    realm.start(() => program.runInContext(context))
  } catch (error) {
    post(port, 'failed', 0, 'code_syntax', '', '', syntaxMessage(error), syntaxLine(error))
  }
  return realm
}

function deliver(port: MessagePort, realm: Prelude, { n, at, ok, code, text }: AnswerMessage): void {
  if (realm.answer(n, at, ok, code, text)) return
  post(port, 'departed', n, '', '', '', '', 0)
}

/** For JSON that the program made. */
function isTooDeep(json: string): boolean {
  let depth = 0
  let isText = false
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (char === '"') isText = !isText
    else if (char === '\\') at++
    else if (!isText && (char === '{' || char === '[') && ++depth > CODE_LIMITS.levels) return true
    else if (!isText && (char === '}' || char === ']')) depth--
  }
  return false
}

/** Nothing can happen any more: the program has ended, or it would wait for ever. */
function reportEnd(port: MessagePort, realm: Prelude, { unhandled }: { unhandled: number }): void {
  if (realm.open() === 0 && !realm.end(unhandled)) post(port, 'stuck', 0, '', '', '', '', 0)
}

function post(port: MessagePort, ...[type, n, kind, server, tool, text, line]: Parameters<typeof fields>): void {
  port.postMessage(fields(type, n, kind, server, tool, text, line))
}

function fields(
  type: string,
  n: number,
  kind: string,
  server: string,
  tool: string,
  text: string,
  line: number
): ThreadOutput {
  return { type, n, kind, server, tool, text, line }
}

function syntaxMessage(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : 'The program could not be read.'
}

/** Node begins the stack of a syntax error with the place. */
function syntaxLine(error: unknown): number {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  return Number(/^[^\n]*:(\d+)\n/.exec(stack)?.[1] ?? 0)
}
