import { instructionsText } from '../../../contract/session-settings.ts'
import { AppError } from '../../lib/errors.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'

const SPACE = 'instructions'

/** A person's instructions to the model for all their sessions. Owners are named by `ownerName`. */
export class PersonInstructions {
  readonly #keyValues: Pick<KeyValueStore, 'get' | 'set' | 'remove'>

  constructor(keyValues: Pick<KeyValueStore, 'get' | 'set' | 'remove'>) {
    this.#keyValues = keyValues
  }

  async of(owner: string): Promise<string> {
    const found = await this.#keyValues.get(SPACE, owner)
    return typeof found === 'string' ? found : ''
  }

  async change(owner: string, input: unknown): Promise<string> {
    const { data: text, error } = instructionsText.safeParse(input)
    if (error) throw new AppError('invalid', 'invalid_instructions', error.issues[0]?.message ?? 'Not valid.')
    if (text === '') await this.#keyValues.remove(SPACE, owner)
    else await this.#keyValues.set(SPACE, owner, text)
    return text
  }
}
