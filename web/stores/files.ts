import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { WorkspaceFile } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { bytes } from '../text/format.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

const READ_ONLY = new Set(['read_file', 'list_files'])

/** The files of the workspace, and which of them the last turn changed. */
export const useFiles = defineStore('files', () => {
  const session = useSession()
  const notices = useNotices()
  const files = ref<WorkspaceFile[]>([])
  const truncated = ref(false)
  const changes = ref(new Map<string, 'new' | 'changed'>())
  const loading = ref(false)
  const isShown = ref(false)
  const uploads = ref(0)
  const isUploading = computed(() => uploads.value > 0)
  const viewing = ref<string | null>(null)
  let known: string | null = null
  let again = false
  /** The server sends the limit with the list of files. Until then only the server checks it. */
  let maxUploadBytes = Number.POSITIVE_INFINITY

  async function load(): Promise<void> {
    if (loading.value) {
      again = true
      return
    }
    loading.value = true
    const id = session.sessionId
    const listing = await notices.attempt(() => api.files(id))
    loading.value = false
    maxUploadBytes = listing?.maxUploadBytes ?? maxUploadBytes
    if (listing && id === session.sessionId) applyListing(id, listing.files, listing.truncated)
    if (again) {
      again = false
      await load()
    }
  }

  function applyListing(id: string, listed: WorkspaceFile[], cut: boolean): void {
    if (known === id) {
      const before = new Map(files.value.map((file) => [file.path, file]))
      for (const { path, type, size, mtimeMs } of listed) {
        if (type === 'directory') continue
        const old = before.get(path)
        if (!old) changes.value.set(path, 'new')
        else if (old.size !== size || old.mtimeMs !== mtimeMs) changes.value.set(path, 'changed')
      }
    }
    known = id
    files.value = listed
    truncated.value = cut
  }

  async function upload(list: Iterable<File>, folder = ''): Promise<void> {
    // The person may switch to another session before all are uploaded.
    const id = session.sessionId
    uploads.value += 1
    for (const file of list) {
      if (file.size > maxUploadBytes) {
        const most = bytes(maxUploadBytes)
        notices.show(`“${file.name}” is larger than ${most}, which is the most here, and was not uploaded.`, 'error')
        continue
      }
      const path = folder === '' ? file.name : `${folder}/${file.name}`
      const content = await file.arrayBuffer().catch(() => null)
      if (!content) {
        notices.show(`“${file.name}” could not be read: it is a folder, or it has changed since.`, 'error')
        continue
      }
      const done = await notices.attempt(() => api.upload(id, path, new Blob([content])))
      if (done) notices.show(`“${file.name}” is in the workspace.`)
    }
    uploads.value -= 1
    await load()
  }

  function bindEvents(): void {
    watch(
      () => [session.sessionId, session.connected, isShown.value],
      () => {
        if (known !== session.sessionId) reset()
        if (session.connected && isShown.value) void load()
      },
      { immediate: true }
    )
    session.onEvent((event) => {
      if (event.type === 'user:message') changes.value.clear()
      if (event.type !== 'tool:result') return
      const name = session.transcript.calls[event.data.callId]?.name ?? ''
      if (!READ_ONLY.has(name) && isShown.value) void load()
    })
  }

  function reset(): void {
    known = null
    files.value = []
    changes.value.clear()
    viewing.value = null
  }
  return { files, truncated, changes, loading, isUploading, isShown, viewing, load, upload, bindEvents }
})
