import { replaceHidden } from '../../../contract/hidden-characters.ts'
import { headOf } from '../../lib/cut-text.ts'

/** Text that looks like a key of a known vendor, even if the vendor has masked half of it. */
const KEY_SHAPES = /\b(?:sk-|sk_|AIza|gsk_|xai-|hf_|Bearer\s+)[\w*.\-…]{8,}/g
const SHORTEST_SECRET = 4

/** A provider's text, made safe for messages and logs: one line, bounded, without keys. */
export function cleanText(text: string, secrets: readonly string[], maxLength = 300): string {
  let clean = text.slice(0, 20_000)
  for (const secret of secrets) {
    if (secret.length >= SHORTEST_SECRET) clean = clean.replaceAll(secret, '[key]')
  }
  clean = replaceHidden(clean.replace(KEY_SHAPES, '[key]'), () => ' ')
  clean = clean.replace(/\s+/g, ' ').trim()
  return clean.length > maxLength ? `${headOf(clean, maxLength - 1)}…` : clean
}
