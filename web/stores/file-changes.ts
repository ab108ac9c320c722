import { defineStore } from 'pinia'
import { ref, watch } from 'vue'
import { ApiError, api } from '../api.ts'
import { type FileDraft, recallEdits, rememberEdits } from '../file-drafts.ts'
import { inFolder, nameOf, parentOf } from '../text/files/file-paths.ts'
import { useFiles } from './files.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** The person's changes to files. The server refuses to replace anything that they have not seen. */
export const useFileChanges = defineStore('file-changes', () => {
  const session = useSession()
  const notices = useNotices()
  const files = useFiles()
  /** By session and path. */
  const drafts = ref(new Map<string, FileDraft>())
  /** The question that is open: a new file or folder in a folder, or another path for something. */
  const asking = ref<{ what: 'file' | 'folder' | 'path'; path: string } | null>(null)
  /** Text that was typed into questions that were closed without an answer. */
  const typed = new Map<string, string>()
  const deleting = ref<string | null>(null)
  /** The file that opens for editing. */
  const editing = ref<string | null>(null)

  /** Sessions with edits that a reload would lose. */
  const atRisk = new Set<string>()

  const keyOf = (path: string) => `${session.sessionId}/${path}`
  const draftOf = (path: string) => drafts.value.get(keyOf(path))
  function keepDraft(path: string, draft: FileDraft): void {
    drafts.value.set(keyOf(path), draft)
    store()
  }
  function dropDraft(path: string): void {
    if (drafts.value.delete(keyOf(path))) store()
  }
  function store(): void {
    const start = keyOf('')
    const edits = [...drafts.value].filter(([key]) => key.startsWith(start))
    const isKept = rememberEdits(
      session.sessionId,
      edits.map(([key, draft]) => [key.slice(start.length), draft])
    )
    if (isKept) atRisk.delete(session.sessionId)
    else atRisk.add(session.sessionId)
  }
  watch(
    () => session.sessionId,
    (id) => {
      for (const [path, draft] of recallEdits(id))
        if (!drafts.value.has(keyOf(path))) drafts.value.set(keyOf(path), draft)
    },
    { immediate: true, flush: 'sync' }
  )
  addEventListener('beforeunload', (event) => {
    if (atRisk.size > 0) event.preventDefault()
  })

  async function create(what: 'file' | 'folder', path: string): Promise<void> {
    const id = session.sessionId
    if (what === 'folder') await api.makeFolder(id, path)
    else await api.saveFile(id, path, new Blob([]), null)
    files.reveal(path)
    await files.load()
  }

  async function move(path: string, to: string): Promise<void> {
    await api.moveFile(session.sessionId, path, to)
    const draft = draftOf(path)
    dropDraft(path)
    if (draft) keepDraft(to, draft)
    if (files.viewing === path) files.viewing = to
    files.forget(path)
    files.reveal(to)
    await files.load()
  }

  /** Moves what was dragged onto a folder. */
  async function moveInto(path: string, folder: string): Promise<void> {
    if (parentOf(path) === folder || path === folder) return
    await notices.attempt(() => move(path, inFolder(folder, nameOf(path))))
  }

  async function remove(path: string): Promise<void> {
    const isDone = await notices.attempt(() => api.deleteFile(session.sessionId, path))
    if (!isDone) return
    dropDraft(path)
    if (files.viewing === path) files.viewing = null
    files.forget(path)
    notices.show(`Deleted “${nameOf(path)}”.`)
    await files.load()
  }

  /** Returns false if the file is no longer as it was opened. */
  async function save(path: string, content: Blob, etag: string | null): Promise<boolean> {
    try {
      await api.saveFile(session.sessionId, path, content, etag)
    } catch (error) {
      if (error instanceof ApiError && ['file_changed', 'file_exists'].includes(error.code)) return false
      throw error
    }
    dropDraft(path)
    notices.show(`Saved “${nameOf(path)}”.`)
    await files.load()
    return true
  }

  return { asking, typed, deleting, editing, draftOf, keepDraft, dropDraft, create, move, moveInto, remove, save }
})
