import type { Ready } from '../../contract/live.ts'
import type { Logger } from '../lib/logger.ts'
import { wireError } from '../lib/web/wire-error.ts'
import type { Models } from '../models/port.ts'
import type { Chat } from '../sessions/chat/chat.ts'

/** If the client requests another model, switches the session to it, for every tab. */
export async function chooseModel(
  sessionId: string,
  input: unknown,
  { models, chat, logger }: { models: Models; chat: Chat; logger: Logger }
): Promise<string> {
  const wanted = typeof input === 'string' && input !== '' ? input : undefined
  const current = (await chat.transcript(sessionId)).model
  if (current !== null && wanted === undefined) return current
  try {
    const model = await models.resolve(wanted)
    if (current === null) {
      if (wanted !== undefined) await models.prove(model)
      return await chat.begin(sessionId, model)
    }
    await chat.selectModel(sessionId, model)
    return model
  } catch (error) {
    const model = current ?? (await chat.begin(sessionId, await models.resolve(undefined)))
    const { message } = wireError(error, logger)
    await chat.notice(sessionId, 'model_not_chosen', `Continuing with ${model}: ${message}`)
    return model
  }
}

/** Tells a client which session and model it is connected to. */
export function ready(sessionId: string, model: string): Ready {
  return { sessionId, provider: model.split('/')[0] ?? '', model }
}
