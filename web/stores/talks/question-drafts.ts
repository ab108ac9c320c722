import { defineStore } from 'pinia'
import { reactive, watch } from 'vue'
import type { AnswerContent, QuestionField } from '../../../contract/questions/questions.ts'
import type { AskedQuestion } from '../../../contract/transcript.ts'
import { recall, remember } from '../../remembered.ts'
import { INPUT } from '../call-views.ts'

/** The input of a form's fields: a text for most, a list for several choices. */
export type FieldInput = string | boolean | string[]
export type FormInput = Record<string, FieldInput>

/** Half-filled answers to questions. They survive a reload of this tab, and rows that are drawn again. */
export const useQuestionDrafts = defineStore('question-drafts', () => {
  const drafts = new Map<string, FormInput>()

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
    return draft
  }
  function forget(sessionId: string, callId: string, question: AskedQuestion): void {
    const key = keyOf(sessionId, callId, question)
    drafts.delete(key)
    remember(key, null, 'tab')
  }
  return { draftOf, forget }
})

export function emptyInput(fields: readonly QuestionField[]): FormInput {
  return Object.fromEntries(
    fields.map((field) => {
      if (field.kind === 'boolean') return [field.name, field.default ?? false]
      if (field.kind === 'choices') return [field.name, field.default ?? []]
      return [field.name, field.default === undefined ? '' : String(field.default)]
    })
  )
}

/** What the input means. Empty fields are left out. */
export function valuesOf(fields: readonly QuestionField[], input: FormInput): AnswerContent {
  return Object.fromEntries(
    fields.flatMap((field): [string, AnswerContent[string]][] => {
      const value = input[field.name]
      if (value === undefined || value === '') return []
      if (field.kind === 'number') return [[field.name, Number(value)]]
      if (field.kind === 'choices' && Array.isArray(value) && value.length === 0 && !field.isRequired) return []
      return [[field.name, value]]
    })
  )
}
