import { defineStore } from 'pinia'
import { reactive, toRaw, watch } from 'vue'
import { type AskedQuestion, isOpenQuestion } from '../../../contract/transcript.ts'
import { recall, remember } from '../../remembered.ts'
import { emptyInput, type FormInput } from '../../text/form-values.ts'
import { INPUT } from '../call-views.ts'
import { useSession } from '../session.ts'
import { useKeptInputs } from './kept-inputs.ts'

/** Half-filled answers to questions. They survive a reload of this tab, and rows that are drawn again. */
export const useQuestionDrafts = defineStore('question-drafts', () => {
  const session = useSession()
  const kept = useKeptInputs()
  const drafts = new Map<string, FormInput>()
  const asked = new Map<string, { sessionId: string; callId: string; question: AskedQuestion }>()
  /** Answers on their way. */
  const sending = new Set<string>()

  function keyOf(sessionId: string, callId: string, { id, at }: AskedQuestion): string {
    return `${INPUT}question:${callId}:${id}:${at}:${sessionId}`
  }
  function draftOf(sessionId: string, callId: string, question: AskedQuestion): FormInput {
    const key = keyOf(sessionId, callId, question)
    const known = drafts.get(key)
    if (known) return known
    const kept = recall(key, 'tab')
    const draft = reactive<FormInput>({ ...emptyInput(question.fields ?? []), ...(kept ? JSON.parse(kept) : {}) })
    watch(draft, () => drafts.has(key) && remember(key, JSON.stringify(draft), 'tab'))
    drafts.set(key, draft)
    asked.set(key, { sessionId, callId, question })
    return draft
  }
  /** A question that was answered elsewhere, or whose call has ended, takes its form with it; what was typed is kept for the person. */
  function keepOrphans(): void {
    for (const [key, { sessionId, callId, question }] of asked) {
      const call = toRaw(session.transcript).calls[callId]
      if (sessionId !== session.sessionId || !call || sending.has(key)) continue
      const now = call.questions?.find(({ id }) => id === question.id)
      if (now && isOpenQuestion(session.transcript, call, now)) continue
      const place = `[data-question="${CSS.escape(question.id)}"]`
      kept.keep('Your answer was not sent: the question is over.', typedText(question, drafts.get(key) ?? {}), place)
      forget(sessionId, callId, question)
    }
  }
  // Runs before the form disappears and loses the focus.
  watch(() => session.version, keepOrphans, { flush: 'sync' })
  /** While `work` sends the answer, the form is not an orphan. */
  async function whileSending(
    sessionId: string,
    callId: string,
    question: AskedQuestion,
    work: () => Promise<boolean>
  ): Promise<boolean> {
    const key = keyOf(sessionId, callId, question)
    sending.add(key)
    const isDone = await work()
    sending.delete(key)
    if (isDone) forget(sessionId, callId, question)
    else keepOrphans()
    return isDone
  }
  function forget(sessionId: string, callId: string, question: AskedQuestion): void {
    const key = keyOf(sessionId, callId, question)
    drafts.delete(key)
    asked.delete(key)
    remember(key, null, 'tab')
  }
  return { draftOf, whileSending }
})

/** The texts that differ from what the form began with, with their names if there are several. */
function typedText({ fields = [] }: AskedQuestion, input: FormInput): string {
  const empty = emptyInput(fields)
  const typed = fields.flatMap(({ name, title }) => {
    const value = input[name]
    return typeof value === 'string' && value !== empty[name] ? [{ title, value }] : []
  })
  return typed.map(({ title, value }) => (typed.length > 1 ? `${title}: ${value}` : value)).join('\n')
}
