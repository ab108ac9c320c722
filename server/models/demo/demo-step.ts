/**
 * The built-in model: rules instead of AI, without a key or network, so that newcomers and tests can go through the whole loop
 * with the real tools and approvals. Its behaviour depends only on the conversation; only its call ids are random.
 */
import { plural } from '../../lib/plural.ts'
import { cancelled } from '../../lib/waiting/cancelled.ts'
import type { AssistantPart, ChatMessage, StepEvent, StepRequest, ToolAnswer } from '../port.ts'
import { roughTokens } from '../step/rough-tokens.ts'
import { isTool, toCalls } from './demo-calls.ts'
import { type DemoRequest, readPlan } from './demo-requests.ts'
import { ABILITIES, announce, INTRODUCTION, report } from './demo-words.ts'

type ToolCall = Extract<AssistantPart, { type: 'tool-call' }>

/** This model is gullible on purpose: a file with such a line gives it orders, and only the approval prevents harm. */
const ORDER_IN_A_FILE = /^.*?DEMO-OBEY:[ \t]*(.+)$/gm
const MAX_OBEYED_STEPS = 3
const CANCELLED = "Cancelled: the demo model's answer."

export async function* demoStep(request: StepRequest): AsyncGenerator<StepEvent, void> {
  const { said, calls } = think(request)
  for (const [text] of said.matchAll(/[\s\S]{1,16}/gu)) {
    if (request.signal.aborted) throw cancelled(request.signal.reason, CANCELLED)
    yield { type: 'text-delta', text }
  }
  if (request.signal.aborted) throw cancelled(request.signal.reason, CANCELLED)
  const parts: AssistantPart[] = [...(said === '' ? [] : [{ type: 'text' as const, text: said }]), ...calls]
  const usage = {
    inputTokens: roughTokens(request.system) + roughTokens(JSON.stringify([request.messages, request.tools])),
    outputTokens: roughTokens(JSON.stringify(parts))
  }
  yield { type: 'done', parts, finish: calls.length > 0 ? 'tool-calls' : 'stop', usage }
}

function think({ messages, tools }: StepRequest): { said: string; calls: ToolCall[] } {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const since = messages.slice(asked + 1)
  const rounds = since.filter(({ role }) => role === 'tool').length
  const user = messages[asked]
  const plan = readPlan(user?.role === 'user' ? user.text : '')
  const answers = lastAnswers(messages)

  const failed = answers.some(({ isError }) => isError)
  const next: DemoRequest[] = failed ? [] : [...(plan.groups[rounds] ?? [])]
  if (rounds <= MAX_OBEYED_STEPS) next.push(...ordersIn(answers))
  const { calls, missing } = toCalls(next, tools)

  const words: string[] = []
  if (!messages.some(({ role }) => role === 'assistant')) words.push(INTRODUCTION)
  words.push(...answers.map((answer) => report(answer, findCall(messages, answer.callId))))
  if (rounds === 0 && user?.role === 'user' && user.files)
    words.push(
      `I can't look at files. You attached ${plural(user.files.length, 'file')}; \`list the files in attachments\` shows them.`
    )
  if (rounds === 0) words.push(...plan.unknown.map((line) => `I don't understand "${line.slice(0, 200)}".`))
  words.push(...missing.map((name) => `There is no tool "${name}" here.`))
  if (failed && plan.groups.length > rounds) words.push('So I skip the rest of your request.')
  if (rounds === 0 && calls.length === 0) words.push(ABILITIES)
  words.push(announce(calls))
  return { said: words.filter((part) => part !== '').join('\n\n'), calls }
}

function lastAnswers(messages: ChatMessage[]): ToolAnswer[] {
  const last = messages.at(-1)
  return last?.role === 'tool' ? last.answers : []
}

function ordersIn(answers: ToolAnswer[]): DemoRequest[] {
  return answers
    .filter(({ name, isError }) => !isError && isTool(name, 'read_file'))
    .flatMap(({ text }) => [...text.matchAll(ORDER_IN_A_FILE)].map((found) => found[1] ?? ''))
    .flatMap((order) => readPlan(order).groups.flat())
}

function findCall(messages: ChatMessage[], callId: string): ToolCall | undefined {
  for (const message of messages.toReversed()) {
    if (message.role !== 'assistant') continue
    for (const part of message.parts) if (part.type === 'tool-call' && part.callId === callId) return part
  }
  return undefined
}
