/**
 * The secret that proves, together with the owner's cookie, whose page this is. Cookies are shared by all ports of a host; what
 * is kept here belongs to this origin alone.
 */
import { recall, remember } from './remembered.ts'

const KEY = 'owner-proof'
const KNOWN_KEY = 'owner-known'
/** For a browser that keeps nothing: as long as the page is open. */
let inMemory: string | null = null

export function ownerProof(): string {
  const kept = recall(KEY) ?? inMemory
  if (kept !== null) return kept
  inMemory = randomText()
  remember(KEY, inMemory)
  return inMemory
}

/** Whether it will still be there after a reload. */
export function isKept(): boolean {
  return recall(KEY) !== null
}

/** Whether the server has taken this page for an owner before. */
export function wasOwner(): boolean {
  return recall(KNOWN_KEY) !== null
}

export function noteOwner(): void {
  remember(KNOWN_KEY, 'yes')
}

/** 32 random bytes as base64url. */
function randomText(): string {
  const text = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
