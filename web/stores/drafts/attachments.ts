import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { Attachment } from '../../../contract/attachments.ts'
import { UPLOAD_MB } from '../../../contract/rest.ts'
import { MAX_ATTACHMENTS } from '../../../contract/stored-files.ts'
import { api, messageOf } from '../../api.ts'
import { drawView, needsView } from '../../attachments/image-view.ts'
import { newId } from '../../new-id.ts'
import { recall, remember } from '../../remembered.ts'
import { count, sizeLimit } from '../../text/format.ts'
import { useNotices } from '../notices.ts'
import { useSession } from '../session.ts'

const SHOWN_PROBLEMS = 3

/** A file that goes with the next message. `stored` is null while it is uploaded. */
interface DraftFile {
  key: string
  name: string
  stored: Attachment | null
}

/** The files of the draft. They are uploaded at once, so that they survive a reload and a change of the session like its text. */
export const useAttachments = defineStore('attachments', () => {
  const session = useSession()
  const notices = useNotices()
  const drafts = ref<Record<string, DraftFile[]>>({})
  const files = computed(() => drafts.value[session.sessionId] ?? [])
  const isUploading = computed(() => files.value.some(({ stored }) => stored === null))

  watch(
    () => session.sessionId,
    (id) => {
      drafts.value[id] ??= recallFiles(id).map((stored) => ({ key: newId(), name: stored.name, stored }))
    },
    { immediate: true, flush: 'sync' }
  )

  function set(id: string, list: DraftFile[]): void {
    drafts.value[id] = list
    const stored = list.flatMap((file) => file.stored ?? [])
    for (const where of ['tab', 'browser'] as const)
      remember(`${FILES}${id}`, stored.length === 0 ? null : JSON.stringify(stored), where)
  }
  const listOf = (id: string) => drafts.value[id] ?? []

  async function attach(given: Iterable<File>): Promise<void> {
    // The person may switch to another session before all are uploaded.
    const id = session.sessionId
    const all = [...given]
    const taken = all.slice(0, Math.max(0, MAX_ATTACHMENTS - listOf(id).length))
    const problems: string[] = []
    if (taken.length < all.length) problems.push(`A message has at most ${MAX_ATTACHMENTS} files.`)
    const fresh = taken.map((file) => ({ file, key: newId() }))
    set(id, [...listOf(id), ...fresh.map(({ key, file }) => ({ key, name: file.name, stored: null }))])
    for (const { file, key } of fresh) {
      try {
        const stored = await upload(id, file)
        set(id, withStored(listOf(id), key, stored))
      } catch (error) {
        set(id, without(listOf(id), key))
        problems.push(`“${file.name}” was not attached: ${messageOf(error)}`)
      }
    }
    if (problems.length > 0) notices.show(joined(problems), 'error')
  }

  function remove(key: string): void {
    const id = session.sessionId
    const stored = files.value.find((file) => file.key === key)?.stored
    set(id, without(files.value, key))
    if (stored) removeStored(id, stored)
  }

  /** It has arrived with a message. */
  function drop(contentId: string): void {
    const rest = files.value.filter(({ stored }) => stored?.id !== contentId)
    if (rest.length < files.value.length) set(session.sessionId, rest)
  }

  /** The files for a message that is sent now. */
  function take(): Attachment[] {
    const stored = files.value.flatMap((file) => file.stored ?? [])
    set(session.sessionId, [])
    return stored
  }

  /** Files of a message that was not sent after all. */
  function giveBack(id: string, list: readonly Attachment[] = []): void {
    const known = listOf(id)
    const missing = list.filter(({ id: file }) => !known.some(({ stored }) => stored?.id === file))
    if (missing.length > 0)
      set(id, [...missing.map((stored) => ({ key: newId(), name: stored.name, stored })), ...known])
  }
  return { files, isUploading, attach, remove, drop, take, giveBack }
})

function joined(problems: readonly string[]): string {
  const others = problems.length - SHOWN_PROBLEMS
  const more = others > 0 ? [`${count(others, 'more file')} could not be attached.`] : []
  return [...problems.slice(0, SHOWN_PROBLEMS), ...more].join(' ')
}

/** The key under which the files of a session's draft are stored begins with this. */
export const FILES = 'files:'

/** A server that gets too much closes the connection, and the browser may not see its reason. So ask for the limit before. */
async function checkSize(id: string, file: File): Promise<void> {
  const usual = UPLOAD_MB * 1024 * 1024
  if (file.size <= usual) return
  const { maxUploadBytes = usual } = await api.files(id)
  if (file.size > maxUploadBytes) throw new Error(`it is larger than ${sizeLimit(maxUploadBytes)}.`)
}

async function upload(id: string, file: File): Promise<Attachment> {
  await checkSize(id, file)
  const content = await file.arrayBuffer().catch(() => {
    throw new Error('it is a folder, or it has changed since.')
  })
  const stored = await api.addAttachment(id, new Blob([content]))
  const view = needsView(stored, file) ? await drawView(file) : null
  return { ...stored, name: file.name.slice(-300), ...(view && { view: await api.addAttachment(id, view) }) }
}

/** It may be attached twice, also to a message that waits. If the server can't be reached, it is removed with the session. */
function removeStored(sessionId: string, { id, view }: Attachment): void {
  const waiting = [FILES, 'queued-files:', 'sent:'].map((place) => recall(`${place}${sessionId}`)).join()
  for (const file of view ? [id, view.id] : [id])
    if (!waiting.includes(file)) api.removeAttachment(sessionId, file).catch(() => {})
}

function withStored(list: DraftFile[], key: string, stored: Attachment): DraftFile[] {
  return list.map((each) => (each.key === key ? { ...each, stored } : each))
}

function without(list: DraftFile[], key: string): DraftFile[] {
  return list.filter((each) => each.key !== key)
}

function recallFiles(id: string): Attachment[] {
  return JSON.parse(recall(`${FILES}${id}`, 'tab') ?? recall(`${FILES}${id}`) ?? '[]') as Attachment[]
}
