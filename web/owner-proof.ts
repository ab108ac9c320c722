/**
 * The secret that proves, together with the owner's cookie, whose page this is. All ports of a host share cookies; local storage
 * belongs to this origin alone.
 */
import { recall, remember } from './remembered.ts'

const KEY = 'owner-proof'
const KNOWN_KEY = 'owner-known'
/** Used by browsers that store nothing, while the page is open. */
let inMemory: string | null = null

export function ownerProof(): string {
  const kept = recall(KEY) ?? inMemory
  if (kept !== null) return kept
  inMemory = randomText()
  remember(KEY, inMemory)
  return inMemory
}

/** Whether the secret survives a reload. */
export function isStored(): boolean {
  return recall(KEY) !== null
}

/** Whether the server has accepted this page as an owner before. */
export function wasOwner(): boolean {
  return recall(KNOWN_KEY) !== null
}

export function markAsOwner(): void {
  remember(KNOWN_KEY, 'yes')
}

/** 32 random bytes as base64url. */
function randomText(): string {
  const text = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
