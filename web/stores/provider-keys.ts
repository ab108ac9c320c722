import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { ProviderKeysReply } from '../../contract/rest.ts'
import { api, messageOf } from '../api.ts'
import { useModels } from './models.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** The providers of models, and the keys that an administrator can enter for them. A key is only in the form until it is sent. */
export const useProviderKeys = defineStore('provider-keys', () => {
  const models = useModels()
  const session = useSession()
  const notices = useNotices()
  const reply = ref<ProviderKeysReply | null>(null)
  /** Whether the dialog with all keys is open. */
  const isShown = ref(false)
  const providers = computed(() => reply.value?.providers ?? [])
  /** Providers with a key that does not work. */
  const broken = computed(() => providers.value.filter(({ source, ok }) => source !== null && !ok))
  const hasWorking = computed(() => providers.value.some(({ ok }) => ok))

  async function load(): Promise<void> {
    reply.value = await api.providers().catch(() => reply.value)
  }
  /** Returns why the key was not taken, or nothing. */
  async function save(id: string, apiKey: string): Promise<string> {
    try {
      await api.setProviderKey(id, apiKey)
    } catch (error) {
      return messageOf(error)
    }
    notices.show('The key works and is saved.')
    await Promise.all([load(), models.load()])
    const first = models.reply?.models.find((model) => model.provider === id)?.id
    const model = models.reply?.default.startsWith(`${id}/`) ? models.reply.default : first
    // An empty chat can use the new model at once.
    if (model && session.transcript.turns === 0) await models.select(model, 'fresh', 0)
    return ''
  }
  /** Goes back to the key of the server's settings, if there is one. */
  async function remove(id: string): Promise<void> {
    if (!(await notices.attempt(() => api.removeProviderKey(id)))) return
    notices.show('The key is removed.')
    await Promise.all([load(), models.load()])
  }
  return { reply, providers, broken, hasWorking, isShown, load, save, remove }
})
