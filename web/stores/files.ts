import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import { FILES_CHANGED } from '../../contract/file-changes.ts'
import type { FileListing, WorkspaceFile } from '../../contract/rest.ts'
import { ApiError, api } from '../api.ts'
import { workspacePath } from '../text/calls/call-summary.ts'
import { nameOf, parentOf } from '../text/files/file-paths.ts'
import { count, sizeLimit } from '../text/format.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

const READ_ONLY = new Set(['read_file', 'list_files'])
/** Maximum number of folders that a refresh requests at once. */
const AT_ONCE = 4

interface Folder {
  files: WorkspaceFile[]
  truncated: boolean
}

/** Events after which the workspace may have other files. */
export const FILE_EVENTS: ReadonlySet<string> = new Set([
  'session:notice',
  'files:added',
  'files:reverted',
  'tool:result',
  'review:applied'
])

/** The folders of the workspace that the person has opened, and which files the last turn changed. */
export const useFiles = defineStore('files', () => {
  const session = useSession()
  const notices = useNotices()
  /** Listings by path; the workspace itself is `''`. */
  const folders = ref(new Map<string, Folder>())
  const opened = ref(new Set<string>())
  const changes = ref(new Map<string, 'new' | 'changed'>())
  const loading = ref(false)
  const isShown = ref(false)
  const uploads = ref(0)
  const isUploading = computed(() => uploads.value > 0)
  const viewing = ref<string | null>(null)
  /** Files to upload whose names are taken, and how to replace those that are there. */
  const asked = ref<{ names: string[]; replace(): Promise<void> } | null>(null)
  let known: string | null = null
  let again = false
  /** The server sends the limit with the list of files. Until then only the server checks it. */
  let maxUploadBytes = Number.POSITIVE_INFINITY

  /** Reads the open folders again. */
  async function load(): Promise<void> {
    if (loading.value) {
      again = true
      return
    }
    loading.value = true
    const paths = ['', ...opened.value]
    for (let from = 0; from < paths.length; from += AT_ONCE) {
      const isAway = (await Promise.all(paths.slice(from, from + AT_ONCE).map(loadFolder))).includes('failed')
      if (isAway) break
    }
    loading.value = false
    if (!again) return
    again = false
    await load()
  }

  async function loadFolder(path: string): Promise<'done' | 'gone' | 'failed'> {
    const id = session.sessionId
    const listing = await notices.attempt(() => listed(id, path))
    if (!listing || id !== session.sessionId) return 'failed'
    if (listing === 'gone') {
      forget(path)
      return 'gone'
    }
    maxUploadBytes = listing.maxUploadBytes ?? maxUploadBytes
    if (known === id) mark(path, listing.files)
    if (path === '') known = id
    folders.value.set(path, { files: listing.files, truncated: listing.truncated })
    return 'done'
  }

  /** A folder that was removed meanwhile is no error: its parent no longer shows it. */
  async function listed(id: string, path: string): Promise<FileListing | 'gone'> {
    try {
      return await api.folder(id, path)
    } catch (error) {
      if (path !== '' && error instanceof ApiError && error.code === 'file_refused') return 'gone'
      throw error
    }
  }

  function mark(folder: string, listed: WorkspaceFile[]): void {
    const listing = folders.value.get(folder)
    if (!listing) return
    const before = new Map(listing.files.map((file) => [file.path, file]))
    for (const { path, type, size, mtimeMs } of listed) {
      if (type === 'directory') continue
      const old = before.get(path)
      if (!old) changes.value.set(path, 'new')
      else if (old.size !== size || old.mtimeMs !== mtimeMs) changes.value.set(path, 'changed')
    }
  }

  function toggle(path: string): void {
    if (opened.value.delete(path)) return
    opened.value.add(path)
    void loadFolder(path)
  }
  /** Opens the folders above a path, so that it can be seen. */
  function reveal(path: string): void {
    for (let folder = parentOf(path); folder !== ''; folder = parentOf(folder)) opened.value.add(folder)
  }
  function forget(path: string): void {
    for (const folder of [...opened.value])
      if (folder === path || folder.startsWith(`${path}/`)) opened.value.delete(folder)
    folders.value.delete(path)
  }
  const find = (path: string) => folders.value.get(parentOf(path))?.files.find((file) => file.path === path)

  /** Uploads files, and asks first if some of their names are taken. */
  async function upload(list: Iterable<File>, folder = ''): Promise<void> {
    const id = session.sessionId
    const given = [...list]
    const taken = await notices.attempt(() => namesIn(id, folder))
    if (!taken) return
    const [replacing, fresh] = [
      given.filter(({ name }) => taken.has(name)),
      given.filter(({ name }) => !taken.has(name))
    ]
    if (replacing.length > 0)
      asked.value = { names: replacing.map(({ name }) => name), replace: () => send(id, replacing, folder) }
    if (fresh.length > 0) await send(id, fresh, folder)
  }
  async function namesIn(id: string, folder: string): Promise<Set<string>> {
    const listing = await listed(id, folder)
    return new Set(listing === 'gone' ? [] : listing.files.map(({ path }) => nameOf(path)))
  }

  /** Shows one notice for all of them, which names what could not be uploaded. The person may switch to another session meanwhile. */
  async function send(id: string, list: File[], folder: string): Promise<void> {
    uploads.value += 1
    const done: string[] = []
    for (const file of list) {
      if (file.size > maxUploadBytes) {
        notices.show(`“${file.name}” was not uploaded: it is larger than ${sizeLimit(maxUploadBytes)}.`, 'error')
        continue
      }
      const path = folder === '' ? file.name : `${folder}/${file.name}`
      const content = await file.arrayBuffer().catch(() => null)
      if (!content) {
        notices.show(`“${file.name}” could not be read: it is a folder, or it has changed since.`, 'error')
        continue
      }
      if (await notices.attempt(() => api.upload(id, path, new Blob([content])))) done.push(file.name)
    }
    uploads.value -= 1
    const place = folder === '' ? '' : ` to ${folder}`
    if (done.length > 0)
      notices.show(`Uploaded ${done.length === 1 ? `“${done[0]}”` : count(done.length, 'file')}${place}.`)
    if (folder !== '') opened.value.add(folder)
    if (id === session.sessionId) await load()
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
      if (event.type === 'session:notice' && event.data.code === FILES_CHANGED && isShown.value) void load()
      const isOther = event.type !== 'session:notice' && event.type !== 'tool:result'
      if (isOther && FILE_EVENTS.has(event.type) && isShown.value) void load()
      if (event.type !== 'tool:result') return
      const call = session.transcript.calls[event.data.callId]
      if (!call || READ_ONLY.has(call.name)) return
      // A file in a closed folder is marked too, and so is the folder.
      const path = call.name === 'write_file' && !event.data.isError && workspacePath(call.target?.path ?? '')
      if (path) changes.value.set(path, call.target?.is === 'new' ? 'new' : 'changed')
      if (isShown.value) void load()
    })
  }

  function reset(): void {
    known = null
    folders.value.clear()
    opened.value.clear()
    changes.value.clear()
    viewing.value = null
    asked.value = null
  }
  const state = { folders, opened, changes, loading, isUploading, isShown, viewing, asked }
  return { ...state, load, toggle, reveal, forget, find, upload, bindEvents }
})
