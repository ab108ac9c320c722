/** Reads a whole body; undefined if it has more than `maxBytes`. The rest is then not read. */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
