/** Translates what an MCP server says and asks during a call of the chat. */

import { readQuestion } from '../../contract/questions/questions.ts'
import type { CallTalk } from '../calls/call-talk.ts'
import type { CallInput } from '../connections/wire/call-input.ts'
import { AppError } from '../lib/errors.ts'

const MAX_LINE_CHARS = 2000

export function serverTalk(talk: CallTalk | undefined): Pick<CallInput, 'onProgress' | 'onRequest' | 'onLog'> {
  if (!talk) return {}
  return {
    onProgress: ({ progress, total, message }) => talk.progress({ progress, total, message }),
    onLog: ({ level, logger, data }) => {
      const text = typeof data === 'string' ? data : (JSON.stringify(data) ?? '')
      const from = typeof logger === 'string' && logger !== '' ? `${logger}: ` : ''
      talk.log({ level: String(level).slice(0, 20), text: `${from}${text}`.slice(0, MAX_LINE_CHARS).toWellFormed() })
    },
    async onRequest({ params }, signal) {
      const question = readQuestion(params)
      if (typeof question === 'string') throw new AppError('invalid', 'invalid_question', question)
      const { action, values } = await talk.ask(question, signal)
      return { action, ...(action === 'accept' && question.fields ? { content: values ?? {} } : {}) }
    }
  }
}
