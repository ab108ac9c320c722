import { replaceHidden } from '../../contract/hidden-characters.ts'
import { fromWire } from '../../workspace-server/checkpoint/raw-path.ts'
import { headOf, tailOf } from '../lib/cut-text.ts'

const MAX_CHARS = 200

/**
 * The header `content-disposition` for a file of the workspace, whose name is hostile. Characters that would hide its ending are
 * replaced, and a name that is not valid UTF-8 has U+FFFD instead of the invalid bytes.
 */
export function asDownload(path: string): string {
  const name = Buffer.from(fromWire(path), 'latin1').toString().split('/').at(-1) ?? ''
  const shown = replaceHidden(name.toWellFormed(), () => '_').replace(/\s/g, ' ')
  // The end tells what kind of file it is.
  const short = shown.length <= MAX_CHARS ? shown : `${headOf(shown, MAX_CHARS - 20)}…${tailOf(shown, 19)}`
  const encoded = encodeURIComponent(short).replace(/['()*!]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
  return `attachment; filename*=UTF-8''${encoded || 'file'}`
}
