/** How the files of a conversation are shown to a model: as files if it takes them, as text otherwise. */
import { createHash } from 'node:crypto'
import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from '@ai-sdk/provider'
import type { ProviderId } from '../models-options.ts'
import type { ChatFile, ChatMessage, ModelInputs, StepRequest } from '../port.ts'

type Part = LanguageModelV4FilePart | LanguageModelV4TextPart

export interface ShownFiles {
  part(file: ChatFile): Part
  /** Whether tool results may contain files. */
  inResults: boolean
  /** The files that are shown as files, not as text. */
  ids: string[]
}

/** Limits for files. Some vendors refuse larger ones, and with them the whole conversation. */
const MAX_IMAGE_BYTES = 3_900_000
const MAX_SIDE = 8000
const MAX_PDF_BYTES = 12_000_000

const REFUSED = 'cannot be shown to you: the provider of this model did not accept it'

export const NO_FILES: ShownFiles = {
  part: (file) => inWords(file, 'is not shown to you'),
  inResults: false,
  ids: []
}

/**
 * `inputs` says what the model takes; undefined means that nobody knows, and images are tried. `isRefused` says whether the vendor
 * has refused a request because of this file.
 */
export async function shownFiles(
  request: Pick<StepRequest, 'messages' | 'readFile'>,
  provider: ProviderId,
  inputs: ModelInputs | undefined,
  isRefused: (id: string) => boolean = () => false
): Promise<ShownFiles> {
  const parts = new Map<string, Part>()
  for (const file of request.messages.flatMap(filesOf)) {
    if (file.isLeftOut || parts.has(file.id)) continue
    const part = isRefused(file.id) ? inWords(file, REFUSED) : await partOf(file, request, provider, inputs)
    parts.set(file.id, part)
  }
  return {
    part: (file) =>
      file.isLeftOut
        ? inWords(file, 'was shown to you earlier and is left out now to save space')
        : (parts.get(file.id) ?? NO_FILES.part(file)),
    // Messages of tools are plain text in this dialect.
    inResults: provider !== 'openai-compatible',
    ids: [...parts].flatMap(([id, { type }]) => (type === 'file' ? id : []))
  }
}

async function partOf(
  file: ChatFile,
  { readFile }: Pick<StepRequest, 'readFile'>,
  provider: ProviderId,
  inputs: ModelInputs | undefined
): Promise<Part> {
  const why = reasonAgainst(file, provider, inputs)
  if (why !== undefined) return inWords(file, why)
  const data = await readFile?.(file.id)
  if (!data) return inWords(file, 'is no longer stored, so you cannot see it')
  if (file.mediaType === 'text/plain') return asText(file, data)
  const { mediaType, name } = file
  return { type: 'file', mediaType, data: { type: 'data', data }, filename: name.replace(/[^\w .()-]/g, '_') }
}

function reasonAgainst(
  { mediaType, size, width = 0, height = 0 }: ChatFile,
  provider: ProviderId,
  inputs: ModelInputs | undefined
): string | undefined {
  if (mediaType === 'text/plain') return undefined
  if (mediaType === 'application/pdf') {
    const takesPdfs = inputs?.pdfs ?? provider !== 'openai-compatible'
    if (!takesPdfs) return 'cannot be shown to you: this model takes no PDFs'
    return size > MAX_PDF_BYTES ? 'is too large to be shown to you' : undefined
  }
  if (inputs?.images === false) return 'cannot be shown to you: this model takes no images'
  if (provider === 'gemini' && mediaType === 'image/gif') return 'cannot be shown to you: this model takes no GIFs'
  const isTooLarge = size > MAX_IMAGE_BYTES || width > MAX_SIDE || height > MAX_SIDE
  return isTooLarge ? 'is too large to be shown to you: make a smaller version of it to look at' : undefined
}

/** The file is hostile text. No file can contain a hash of itself, so it can't imitate its last line. The same in every request, for caches. */
function asText({ name }: ChatFile, data: Uint8Array): Part {
  const text = new TextDecoder().decode(data).toWellFormed()
  const mark = createHash('sha256').update(data).digest('hex').slice(0, 24)
  const file = `The file ${JSON.stringify(name)}`
  return { type: 'text', text: `[${file} begins here, up to the mark ${mark}:]\n${text}\n[${file} ends here. ${mark}]` }
}

function inWords({ name, mediaType }: ChatFile, why: string): LanguageModelV4TextPart {
  return { type: 'text', text: `[${JSON.stringify(name)} (${mediaType}) ${why}.]` }
}

function filesOf(message: ChatMessage): ChatFile[] {
  if (message.role === 'user') return message.files ?? []
  return message.role === 'tool' ? message.answers.flatMap(({ files }) => files ?? []) : []
}
