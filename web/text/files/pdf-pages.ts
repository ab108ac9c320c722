/** Counts the pages of a PDF without running any of it. Returns null if that can't be seen. */
const MAX_STREAMS = 200
const MAX_INFLATED = 4 * 1024 * 1024

export async function pdfPages(bytes: Uint8Array<ArrayBuffer>): Promise<number | null> {
  // One character per byte.
  const text = new TextDecoder('windows-1252').decode(bytes)
  const plain = countIn(text)
  if (plain !== null) return plain
  // Newer files keep the list of pages compressed.
  let best: number | null = null
  let left = MAX_STREAMS
  for (const { index, 0: head } of text.matchAll(/\/Type\s*\/ObjStm\b[\s\S]{0,500}?stream\r?\n/g)) {
    if (left-- === 0) break
    const start = index + head.length
    const end = text.indexOf('endstream', start)
    const found = end < 0 ? null : countIn(await inflated(bytes.subarray(start, end)))
    if (found !== null) best = Math.max(best ?? 0, found)
  }
  return best
}

function countIn(text: string): number | null {
  const counts = [...text.matchAll(/<<[^<>]*>>/g)].flatMap(([dictionary]) => {
    if (!/\/Type\s*\/Pages\b/.test(dictionary)) return []
    return [Number(/\/Count\s+(\d{1,7})\b/.exec(dictionary)?.[1] ?? 0)]
  })
  const most = Math.max(0, ...counts)
  return most > 0 ? most : null
}

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))
  let text = ''
  try {
    // Bytes after the end of the stream are an error, but what came before counts.
    for (const reader = stream.getReader(); text.length < MAX_INFLATED; ) {
      const { done, value } = await reader.read()
      if (done) break
      text += new TextDecoder('windows-1252').decode(value)
    }
  } catch {}
  return text
}
