/** The answer of a person to a question that an MCP server asks during a call. */

import type { CommandData } from '../../../contract/commands.ts'
import { answerProblem } from '../../../contract/questions/answers.ts'
import { callOf, isOpenQuestion, type Transcript } from '../../../contract/transcript.ts'
import { AppError } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { answerOf } from '../turns/call-talks.ts'

/** The event of the answer. Throws if the question is no longer open, or the values do not fit its form. */
export function answerTo(transcript: Transcript, answer: CommandData<'tool:answer'>): NewEvent {
  const { callId, id, action, values } = answer
  const call = callOf(transcript, callId)
  const question = call?.questions?.find((each) => each.id === id)
  if (!call || !question)
    throw new AppError('not-found', 'unknown_question', 'There is no such question in this session.')
  if (question.answer) throw alreadyAnswered()
  if (!isOpenQuestion(transcript, call, question))
    throw new AppError('conflict', 'question_over', 'The call has ended, so its question can no longer be answered.')
  const isForm = action === 'accept' && question.fields !== undefined
  const problem = isForm ? answerProblem(question.fields ?? [], values ?? {}) : undefined
  if (problem) throw new AppError('invalid', 'invalid_answer', `The answer does not fit the form: ${problem}`)
  return answerOf({ callId, id, action, by: 'human', ...(isForm && { values: values ?? {} }) })
}

export function alreadyAnswered(): AppError {
  return new AppError('conflict', 'already_answered', 'This question has already been answered.')
}
