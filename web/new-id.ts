/** An id that nobody guesses. */
export function newId(): string {
  // randomUUID is missing where the page is not served securely, such as another machine in the same room.
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
