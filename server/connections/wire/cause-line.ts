const MAX_CHARS = 300
/** How Node, Python and Java begin the line with the error. */
const ERROR_LINE = /^(?:Uncaught |Caused by: )?(?:[\w$]+\.)*\w*(?:Error|Exception)\b.*[:[].*$/m
/** How npm, shells, Go, Rust and most command lines do. npm first says the code alone. */
const OTHER_LINE =
  /^(?:npm (?:error|ERR!) (?!code\b|errno\b|syscall\b|path\b|A complete log)\S.*|(?:fatal|error|panic)(?: error)?:.*|thread '.*' panicked.*|\S*sh: .*not found.*)$/im
/** Lines that only say where something happened, or where to find help. */
const TRACE_LINE =
  /^\s*(?:(?:Run|See|Try|Use) ['"`].*--help\b.*|For more (?:help|information)\b.*|at |File ".*", line |\^+$|Node\.js v|node:|[\w./-]+:\d+(?::\d+)?$|}$|throw )/

/** The one line of a server's output that says why it ended; undefined if there is none. The text is hostile. */
export function causeLine(output: string): string | undefined {
  const line = ERROR_LINE.exec(output)?.[0] ?? OTHER_LINE.exec(output)?.[0] ?? lastPlainLine(output)
  return line?.trim().slice(0, MAX_CHARS).toWellFormed().replace(/\.$/, '')
}

function lastPlainLine(output: string): string | undefined {
  return output.split('\n').findLast((line) => line.trim() !== '' && !TRACE_LINE.test(line))
}
