import { nextTick } from 'vue'
import { revealPlainly } from '../../../contract/hidden-characters.ts'
import { useComposer } from '../../stores/composer.ts'
import { useAttachments } from '../../stores/drafts/attachments.ts'
import { usePlace } from '../../stores/place.ts'

/** A longer text becomes a file, as a pasted one does. */
const MAX_CHARS = 20_000

interface Part {
  role: string | null
  text: string
  /** Data addresses. */
  images: readonly string[]
}

/**
 * Puts what a server offers into the draft of the open session: its texts, and its pictures as files. A text field shows no hidden
 * characters, so they are named: the person sends what they see.
 */
export function usePutIntoMessage(): (name: string, parts: readonly Part[]) => Promise<void> {
  const composer = useComposer()
  const attachments = useAttachments()
  const place = usePlace()
  return async (name, parts) => {
    const isTalk = parts.some(({ role }) => role === 'assistant')
    const speaker = (role: string | null) => (isTalk ? `${role === 'assistant' ? 'Assistant' : 'User'}: ` : '')
    const said = parts.filter(({ text }) => text !== '').map(({ role, text }) => `${speaker(role)}${text}`)
    const text = revealPlainly(said.join('\n\n'), 'prose')
    const files = parts.flatMap(({ images }) => images).map((image, at) => imageFile(image, `${name} ${at + 1}`))
    if (text.length > MAX_CHARS) files.push(new File([text], `${name}.txt`, { type: 'text/plain' }))
    else composer.draft = [composer.draft.trimEnd(), text].filter(Boolean).join('\n\n')
    if (files.length > 0) void attachments.attach(files)
    place.toChat()
    await nextTick()
    document.querySelector<HTMLElement>('#composer')?.focus()
  }
}

/** The page's policy allows no request for a data address. */
function imageFile(address: string, name: string): File {
  const [, type = '', data = ''] = /^data:([^;]+);base64,(.*)$/.exec(address) ?? []
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
  return new File([bytes], `${name}.${type.split('/')[1]}`, { type })
}
