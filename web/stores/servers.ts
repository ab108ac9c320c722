import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { EntryDraft } from '../../contract/servers/entry-edits.ts'
import type { ImportServers } from '../../contract/servers/import.ts'
import type {
  AddedReply,
  AddServers,
  PlanReply,
  ServerDetail,
  ServersReply,
  TestReply
} from '../../contract/servers/servers.ts'
import { ApiError, api, messageOf, setAdminToken } from '../api.ts'
import type { EntryForm } from '../text/entry-form.ts'
import { count } from '../text/format.ts'
import { emptyAddition } from '../text/server-form.ts'
import { useNotices } from './notices.ts'

/** The MCP servers in the registry, as last reported by the server. */
export const useServers = defineStore('servers', () => {
  const notices = useNotices()
  const reply = ref<ServersReply | null>(null)
  const detail = ref<ServerDetail | null>(null)
  /** Running tests, and the results of finished ones. */
  const tests = ref(new Map<string, TestReply | 'running'>())
  /** The state of a server when its test ended. Later news replaces the result of the test. */
  const testedStates = new Map<string, string>()
  const failure = ref('')
  let shown: string | null = null
  const admin = computed(() => reply.value?.admin ?? 'token_needed')
  const canChange = computed(() => admin.value === 'allowed')

  /** Loads the list and the open server's page. Keeps the old data if the server can't be reached. */
  async function load(): Promise<void> {
    const name = shown
    try {
      const list = await api.servers()
      reply.value = list
      for (const [name, state] of testedStates) if (stateOf(name) !== state) forgetTest(name)
      const isThere = list.servers.some((server) => server.name === name)
      const found = name !== null && isThere ? await api.server(name) : null
      if (name === shown) detail.value = found
      failure.value = ''
    } catch (error) {
      // The token has changed. Sending the old one again would count as guessing.
      if (error instanceof ApiError && error.code === 'admin_required') setAdminToken('')
      if (error instanceof ApiError && error.code === 'unknown_server' && name === shown) detail.value = null
      else failure.value = messageOf(error)
    }
  }
  /** Returns what is wrong with the token, or nothing if it is right. */
  async function unlock(token: string): Promise<string> {
    setAdminToken(token)
    try {
      reply.value = await api.servers()
      await load()
      return ''
    } catch (error) {
      setAdminToken('')
      return messageOf(error)
    }
  }
  async function show(name: string | null): Promise<void> {
    if (name !== shown) detail.value = null
    shown = name
    await load()
  }
  function stateOf(name: string): string {
    const server = reply.value?.servers.find((each) => each.name === name)
    return server ? `${server.enabled} ${server.lastError?.at}` : ''
  }
  function forgetTest(name: string): void {
    testedStates.delete(name)
    tests.value.delete(name)
  }
  async function test(name: string): Promise<void> {
    testedStates.delete(name)
    tests.value.set(name, 'running')
    const done = await notices.attempt(() => api.testServer(name))
    if (done) {
      tests.value.set(name, done)
      notices.announce(done.ok ? `${name} works: ${count(done.tools, 'tool')}.` : `${name} fails: ${done.reason}`)
    } else tests.value.delete(name)
    await load()
    if (tests.value.get(name) !== 'running') testedStates.set(name, stateOf(name))
  }
  async function change(work: () => Promise<unknown>): Promise<boolean> {
    const done = await notices.attempt(async () => {
      await work()
      return true
    })
    await load()
    return done === true
  }
  const enable = (name: string) => change(() => api.switchServer(name, 'enable'))
  const disable = (name: string) => change(() => api.switchServer(name, 'disable'))
  async function accept(name: string, hash: string): Promise<void> {
    if (await change(() => api.acceptServer(name, hash))) await test(name)
  }
  async function restart(name: string): Promise<void> {
    if (await change(() => api.restartServer(name))) await test(name)
  }
  const remove = (name: string) => change(() => api.removeServer(name))

  /** In memory only, because it may contain secrets. Closing the dialog keeps it. */
  const addition = ref(emptyAddition())
  /** Entries with unsaved changes, kept in the same way. */
  const edits = new Map<string, { draft: EntryDraft; form: EntryForm }>()
  const plan = (request: AddServers): Promise<PlanReply> => api.addServers<PlanReply>(request)
  async function add(request: AddServers, confirm: string): Promise<string[]> {
    const { added } = await api.addServers<AddedReply>({ ...request, confirm })
    addition.value = emptyAddition()
    await load()
    for (const name of added) void test(name)
    return added
  }
  async function importThese(wish: ImportServers): Promise<string[]> {
    const { added } = await api.importServers(wish)
    await load()
    for (const name of added)
      if (reply.value?.servers.some((each) => each.name === name && each.enabled)) void test(name)
    return added
  }
  return {
    admin,
    canChange,
    unlock,
    reply,
    detail,
    tests,
    failure,
    load,
    show,
    test,
    enable,
    disable,
    accept,
    restart,
    remove,
    addition,
    edits,
    plan,
    add,
    importThese
  }
})
