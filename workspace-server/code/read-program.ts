import { stripTypeScriptTypes } from 'node:module'
import { Script } from 'node:vm'
import { PROGRAM_FILE } from './code-protocol.ts'

const OPEN = '(async () => {"use strict";'
const CLOSE = '\n})()'
/** A line that begins like this may continue the statement before it. */
const CONTINUES = /^\s*([([`+\-*/%,.?:&|^<>=!~]|in\b|instanceof\b|of\b|else\b|catch\b|finally\b|while\b)/
/** As an expression, a declaration would no longer be known to the lines before it. */
const DECLARES = /^\s*(async\s+function|function|class)\b/
const MAX_TAIL_LINES = 60

/**
 * The program as a script that returns a promise of its value. Types are replaced by blanks, so every line and column stays where
 * it is. Throws what Node says about the program.
 */
export function readProgram(code: string): Script {
  const stripped = stripTypeScriptTypes(`${OPEN}${code}${CLOSE}`)
  return compile(returning(stripped.slice(OPEN.length, -CLOSE.length)))
}

/**
 * Makes the last statement the value if it is an expression. Without a parser: the tail must be an expression, and what stands
 * before it must be complete without it.
 */
function returning(code: string): string {
  const lines = code.trimEnd().split('\n')
  for (let at = lines.length - 1; at >= Math.max(0, lines.length - MAX_TAIL_LINES); at--) {
    const tail = lines.slice(at).join('\n')
    if (tail.trim() === '' || (at > 0 && CONTINUES.test(tail))) continue
    const head = lines
      .slice(0, at)
      .map((line) => `${line}\n`)
      .join('')
    if (compiles(head)) return withValue(head, tail) ?? code
  }
  return code
}

/** The last line may have several statements. */
function withValue(head: string, tail: string): string | undefined {
  const value = tail.trimEnd().replace(/;$/, '')
  if (!DECLARES.test(value) && compiles(`return (${value}\n)`)) return `${head}return (${value}\n)`
  const end = value.lastIndexOf(';') + 1
  const [before, last] = [head + value.slice(0, end), value.slice(end)]
  const isValue = end > 0 && last.trim() !== '' && !DECLARES.test(last)
  return isValue && compiles(before) && compiles(`return (${last}\n)`) ? `${before}return (${last}\n)` : undefined
}

function compiles(body: string): boolean {
  try {
    compile(body)
    return true
  } catch {
    return false
  }
}

/** An import gives the program a plain text: an error of ours would be an object from outside the realm. */
const importModuleDynamically = () => {
  throw 'import is not available in a program.'
}

function compile(body: string): Script {
  return new Script(`${OPEN}${body}${CLOSE}`, {
    filename: PROGRAM_FILE,
    columnOffset: -OPEN.length,
    importModuleDynamically
  })
}
