/** The models that the settings give access to. The gateway loads this on demand, because it is as large as the rest. */
import type { Settings } from '../config/settings.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import { readSmallFile } from '../lib/files/read-small-file.ts'
import type { Logger } from '../lib/logger.ts'
import { createModels } from '../models/create-models.ts'
import { DEMO_INFO } from '../models/demo/demo-info.ts'
import type { KeyedModels } from '../models/models-options.ts'
import type { Models } from '../models/port.ts'
import { type PriceTable, readPrices } from '../models/price-table.ts'
import { accessWithKeys } from './provider-keys.ts'

const MAX_PRICES_BYTES = 4 * 1024 * 1024

export function openModels(settings: Settings, logger: Logger): Models & KeyedModels {
  return createModels({ ...accessWithKeys(settings), prices: openPrices(settings), logger })
}

function openPrices({ MODEL_PRICES: path }: Settings): PriceTable | undefined {
  if (path === undefined) return undefined
  let text: string
  try {
    text = readSmallFile(path, MAX_PRICES_BYTES)
  } catch (error) {
    const message = `MODEL_PRICES: the file can't be read (${messageOf(error)}).`
    throw new AppError('invalid', 'invalid_setting', message)
  }
  return readPrices(text)
}

/** One answer of the default model, as text. The demo model is not used, because it knows no more than the rules. */
export async function writeText(
  models: Models,
  { system, prompt, maxTokens }: { system: string; prompt: string; maxTokens: number },
  signal: AbortSignal
): Promise<string> {
  const model = await models.resolve(undefined)
  if (model === DEMO_INFO.id) throw new AppError('unavailable', 'model_unknown', 'No model is configured.')
  const messages = [{ role: 'user' as const, text: prompt }]
  const request = { model, system, messages, tools: [], maxOutputTokens: maxTokens, signal }
  for await (const event of models.step(request)) {
    if (event.type === 'done') return event.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  }
  return ''
}
