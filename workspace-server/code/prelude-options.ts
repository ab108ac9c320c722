/** The input of the prelude of a program. Returns why it was not sent. */
export type Send = (
  type: string,
  n: number,
  kind: string,
  server: string,
  tool: string,
  text: string,
  line: number
) => string | undefined

export interface PreludeOptions {
  send: Send
  seed: number
  now: number
  /** Frames behind the last line are ours. */
  lines: number
  limits: {
    openCalls: number
    argumentChars: number
    allArgumentsChars: number
    logChars: number
    logLineChars: number
    progressChars: number
  }
}
