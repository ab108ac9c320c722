import { replaceHidden } from '../../contract/hidden-characters.ts'
import { fromWire } from '../../workspace-server/checkpoint/raw-path.ts'
import { headOf, tailOf } from '../lib/cut-text.ts'

const MAX_CHARS = 200
const MAX_TITLE_CHARS = 80

/**
 * The header `content-disposition` for a file of the workspace, whose name is hostile. Characters that would hide its ending are
 * replaced, and a name that is not valid UTF-8 has U+FFFD instead of the invalid bytes.
 */
export function asDownload(path: string): string {
  return attachmentNamed(Buffer.from(fromWire(path), 'latin1').toString().split('/').at(-1) ?? '')
}

/** The same for a file that is named after a hostile title. What file systems can't have in a name is left out. */
export function asTitled(title: string, ending: string): string {
  const name = title.replace(/[\\/:*?"<>|\s\p{Cc}]+/gu, ' ').replace(/^[\s.]+|[\s.]+$/gu, '')
  return attachmentNamed(`${headOf(name, MAX_TITLE_CHARS).trim() || 'conversation'}.${ending}`)
}

function attachmentNamed(name: string): string {
  const shown = replaceHidden(name.toWellFormed(), () => '_').replace(/\s/g, ' ')
  // The end tells what kind of file it is.
  const short = shown.length <= MAX_CHARS ? shown : `${headOf(shown, MAX_CHARS - 20)}…${tailOf(shown, 19)}`
  const encoded = encodeURIComponent(short).replace(/['()*!]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
  return `attachment; filename*=UTF-8''${encoded || 'file'}`
}
