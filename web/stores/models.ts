import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { HistoryChoice } from '../../contract/events.ts'
import type { ModelsReply } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

export const useModels = defineStore('models', () => {
  const session = useSession()
  const notices = useNotices()
  const reply = ref<ModelsReply | null>(null)
  const loading = ref(false)

  const groups = computed(() =>
    (reply.value?.providers ?? []).map((provider) => ({
      ...provider,
      models: reply.value?.models.filter((model) => model.provider === provider.id) ?? []
    }))
  )
  /** Ids are `provider/id`; what `system:ready` names may be either form. */
  const currentId = computed(() => {
    const { provider = '', model = '' } = session.ready ?? {}
    return model.startsWith(`${provider}/`) ? model : `${provider}/${model}`
  })
  const currentName = computed(
    () => reply.value?.models.find(({ id }) => id === currentId.value)?.name ?? session.ready?.model ?? ''
  )

  async function load(refresh = false): Promise<void> {
    loading.value = true
    reply.value = (await notices.attempt(() => (refresh ? api.refreshModels() : api.models()))) ?? reply.value
    loading.value = false
  }

  /** `maxCancelled`: how many waiting approvals the person knows that this cancels. */
  const select = (model: string, history: HistoryChoice, maxCancelled: number) =>
    session.sendOrShow('model:select', { model, history, maxCancelled })
  return { reply, loading, groups, currentId, currentName, load, select }
})
