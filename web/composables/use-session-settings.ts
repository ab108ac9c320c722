/** The form for the settings of the open session. What was typed stays until it is saved or discarded, also when the dialog closes. */
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { EFFORTS, type Effort, type SessionSettings } from '../../contract/session-settings.ts'
import { api } from '../api.ts'
import { useNotices } from '../stores/notices.ts'
import { useSession } from '../stores/session.ts'

interface SettingsForm {
  effort: Effort | ''
  /** As typed; empty means as usual. */
  temperature: string | number
  maxOutputTokens: string | number
  instructions: string
  person: string
}

export const useSessionSettings = defineStore('session-settings', () => {
  const session = useSession()
  const notices = useNotices()
  const drafts = ref<Record<string, SettingsForm>>({})
  /** The instructions for all sessions as the server has them; null until they are loaded. */
  const person = ref<string | null>(null)
  const form = computed(() => drafts.value[session.sessionId])

  async function open(): Promise<void> {
    const id = session.sessionId
    if (drafts.value[id]) return
    const reply = await notices.attempt(() => api.instructions())
    person.value = reply?.text ?? null
    const { effort, temperature, maxOutputTokens, instructions = '' } = session.transcript.settings
    drafts.value[id] ??= {
      effort: effort ?? '',
      temperature: temperature ?? '',
      maxOutputTokens: maxOutputTokens ?? '',
      instructions,
      person: person.value ?? ''
    }
  }

  function discard(): void {
    delete drafts.value[session.sessionId]
  }

  /** Returns false, and keeps the form, if something was not saved. */
  async function save(): Promise<boolean> {
    const filled = form.value
    if (!filled) return true
    const isSaved = await session.sendOrShow('session:configure', settingsOf(filled))
    const isNew = person.value !== null && filled.person.trim() !== person.value
    const isStored = !isNew || (await notices.attempt(() => api.changeInstructions(filled.person))) !== undefined
    if (isSaved && isStored) discard()
    return isSaved && isStored
  }

  return { form, person, open, discard, save }
})

function settingsOf({ effort, temperature, maxOutputTokens, instructions }: SettingsForm): SessionSettings {
  const chosen = EFFORTS.find((each) => each === effort)
  const text = instructions.trim()
  return {
    ...(chosen && { effort: chosen }),
    ...(temperature !== '' && { temperature: Number(temperature) }),
    ...(maxOutputTokens !== '' && { maxOutputTokens: Number(maxOutputTokens) }),
    ...(text !== '' && { instructions: text })
  }
}
