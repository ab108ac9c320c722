import type { ServerLogLine } from '../../contract/events.ts'
import type { AnswerAction, AnswerContent, Question } from '../../contract/questions/questions.ts'

export interface Answer {
  action: AnswerAction
  values?: AnswerContent | undefined
}

/** The messages and questions of an MCP server to the person while it works on a call. */
export interface CallTalk {
  progress(report: { progress: number; total?: number | undefined; message?: string | undefined }): void
  log(line: ServerLogLine): void
  /** The end of what was logged until now. */
  logged(): ServerLogLine[]
  /** Rejects if the question can't be asked, or if the call ends before there is an answer. */
  ask(question: Question, signal: AbortSignal): Promise<Answer>
}
