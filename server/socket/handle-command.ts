import type { z } from 'zod'
import { COMMAND_SCHEMAS, type CommandData, type CommandName } from '../../contract/commands.ts'
import { AppError } from '../lib/errors.ts'
import type { Models } from '../models/port.ts'
import type { Chat } from '../sessions/chat/chat.ts'

type ZodIssue = z.core.$ZodIssue

export interface CommandContext {
  chat: Chat
  models: Models
}

/** Parses and runs a command; the result goes into the ack. */
export async function handleCommand(
  name: CommandName,
  input: unknown,
  sessionId: string,
  context: CommandContext
): Promise<object> {
  const { chat, models } = context
  switch (name) {
    case 'message':
      return chat.send(sessionId, parse(name, input))
    case 'tool:approval':
      await chat.decide(sessionId, parse(name, input))
      break
    case 'tool:target':
      return chat.target(sessionId, parse(name, input))
    case 'tool:answer':
      await chat.answer(sessionId, parse(name, input))
      break
    case 'turn:cancel':
      await chat.cancel(sessionId)
      break
    case 'turn:retry':
      return chat.retry(sessionId, parse(name, input))
    case 'history:reset':
      await chat.reset(sessionId)
      break
    case 'history:rewind':
      return chat.rewind(sessionId, parse(name, input))
    case 'history:restore':
      return chat.restore(sessionId, parse(name, input))
    case 'model:select': {
      const { model: wanted, ...how } = parse(name, input)
      const model = await models.resolve(wanted)
      await chat.selectModel(sessionId, model, how)
      return { model }
    }
    case 'session:configure':
      await chat.configure(sessionId, parse(name, input))
      break
    case 'tool:revoke':
      await chat.revoke(sessionId, parse(name, input))
      break
    case 'limit:raise':
      await chat.raiseLimit(sessionId)
      break
    case 'mode:select':
      await chat.selectMode(sessionId, parse(name, input))
      break
    case 'review:decide':
      await chat.decideReview(sessionId, parse(name, input))
      break
    case 'files:revert':
      return chat.revert(sessionId, parse(name, input))
    case 'session:snapshot':
      break
    default:
      return unknownCommand(name)
  }
  return {}
}

/** Doesn't compile if a command of the contract has no case above. */
function unknownCommand(name: never): never {
  throw new AppError('invalid', 'invalid_payload', `There is no command "${String(name)}".`)
}

/** Reports the problem of the variant that matches the payload best. */
function firstIssue(issues: ZodIssue[]): ZodIssue | undefined {
  const [issue] = issues
  if (issue?.code !== 'invalid_union') return issue
  const nested = issue.errors.flatMap((errors) => firstIssue(errors as ZodIssue[]) ?? [])
  return nested.find(({ code }) => code !== 'invalid_type') ?? nested[0] ?? issue
}

function parse<C extends CommandName>(name: C, input: unknown): CommandData<C> {
  const parsed = COMMAND_SCHEMAS[name].safeParse(input)
  if (parsed.success) return parsed.data as CommandData<C>
  const issue = firstIssue(parsed.error.issues)
  const where = issue?.path.length ? `${issue.path.join('.')}: ` : ''
  throw new AppError('invalid', 'invalid_payload', `The payload of "${name}" is not valid (${where}${issue?.message}).`)
}
