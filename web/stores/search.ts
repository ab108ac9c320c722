import { defineStore } from 'pinia'
import { computed, ref, shallowRef, watch } from 'vue'
import type { SearchReply } from '../../contract/rest.ts'
import { api, messageOf } from '../api.ts'
import { useNotices } from './notices.ts'

/** Delay between the last keystroke and the search. */
const SEARCH_AFTER_MS = 250

/** The search over titles and messages of all sessions. */
export const useSearch = defineStore('search', () => {
  const notices = useNotices()
  const text = ref('')
  /** Null until the server has answered this search. */
  const reply = shallowRef<SearchReply | null>(null)
  const failure = ref('')
  const isOn = computed(() => text.value.trim() !== '')
  let timer: ReturnType<typeof setTimeout>
  let requests = 0

  async function find(): Promise<void> {
    const request = ++requests
    try {
      const found = await api.search(text.value.trim())
      if (request !== requests) return
      reply.value = found
      failure.value = ''
    } catch (error) {
      if (request === requests) failure.value = messageOf(error)
    }
  }
  /** Shows everything that was found in one session. */
  async function showAll(sessionId: string): Promise<void> {
    const request = requests
    const found = await notices.attempt(() => api.search(text.value.trim(), sessionId))
    const [all] = found?.hits ?? []
    if (!all || !reply.value || request !== requests) return
    reply.value = {
      ...reply.value,
      hits: reply.value.hits.map((hit) => (hit.summary.sessionId === sessionId ? all : hit))
    }
  }
  watch(text, () => {
    clearTimeout(timer)
    requests += 1
    failure.value = ''
    if (isOn.value) timer = setTimeout(find, SEARCH_AFTER_MS)
    else reply.value = null
  })
  return { text, reply, failure, isOn, showAll }
})
