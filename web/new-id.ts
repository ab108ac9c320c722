/** An unguessable id. */
export function newId(): string {
  // randomUUID is missing if the page is not served securely, for example over plain HTTP from another machine.
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
