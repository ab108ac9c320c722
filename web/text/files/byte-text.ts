/** One character for each byte. */
export function byteText(bytes: Uint8Array): string {
  const parts: string[] = []
  for (let from = 0; from < bytes.length; from += 10_000)
    parts.push(String.fromCharCode(...bytes.subarray(from, from + 10_000)))
  return parts.join('')
}
