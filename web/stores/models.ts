import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { HistoryChoice } from '../../contract/events.ts'
import type { ModelsReply } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { remember } from '../remembered.ts'
import { useNotices } from './notices.ts'
import { LAST_MODEL, useSession } from './session.ts'

export const useModels = defineStore('models', () => {
  const session = useSession()
  const notices = useNotices()
  const reply = ref<ModelsReply | null>(null)
  const loading = ref(false)

  const groups = computed(() => groupsWith(''))
  /** The providers with those of their models that have all words of `filter` in their names. */
  function groupsWith(filter: string) {
    const words = filter.toLowerCase().split(/\s+/)
    const isMeant = ({ id, name }: ModelsReply['models'][number]) =>
      words.every((word) => `${id} ${name}`.toLowerCase().includes(word))
    return (reply.value?.providers ?? []).map((provider) => ({
      ...provider,
      models: reply.value?.models.filter((model) => model.provider === provider.id && isMeant(model)) ?? []
    }))
  }
  /** Ids are `provider/id`; what `system:ready` names may be either form. */
  const currentId = computed(() => {
    const { provider = '', model = '' } = session.ready ?? {}
    return model.startsWith(`${provider}/`) ? model : `${provider}/${model}`
  })
  const current = computed(() => reply.value?.models.find(({ id }) => id === currentId.value))
  const currentName = computed(() => current.value?.name ?? session.ready?.model ?? '')

  /** How much of what the model gets is used, in tokens. The limit is unknown until the models are loaded, or if nobody says. */
  const context = computed(() => {
    const { contextTokens } = current.value ?? {}
    const limits = [contextTokens, reply.value?.maxHistoryTokens].filter((limit) => limit !== undefined)
    return { used: session.transcript.contextTokens, limit: limits.length > 0 ? Math.min(...limits) : undefined }
  })
  watch(
    () => session.transcript.contextTokens > 0 && reply.value === null,
    (isNeeded) => isNeeded && void load(),
    { immediate: true }
  )

  /** Whether the model can look at images and PDFs; undefined if nobody says. */
  const inputs = computed(() => current.value?.inputs)

  async function load(refresh = false): Promise<void> {
    loading.value = true
    reply.value = (await notices.attempt(() => (refresh ? api.refreshModels() : api.models()))) ?? reply.value
    loading.value = false
  }

  /** `maxCancelled`: how many waiting approvals the person knows that this cancels. */
  async function select(model: string, history: HistoryChoice, maxCancelled: number): Promise<boolean> {
    const isDone = await session.sendOrShow('model:select', { model, history, maxCancelled })
    // A model that does not answer may have left the list.
    if (!isDone) void load()
    else remember(LAST_MODEL, model)
    return isDone
  }
  session.onEvent(({ type, data }) => {
    if (type === 'agent:error' && data.code === 'model_not_found') void load()
  })
  return { reply, loading, groups, groupsWith, currentId, currentName, context, inputs, load, select }
})
